/* Draws with a geometry shader, tessellation or transform feedback with Vulkan and writes the picture as a PAM file, top row first.

       vulkan_geometry SCENE FILE

   Scenes: geometry, tessellation, tessellated-geometry, feedback. Prints pipeline statistics, and what transform feedback has captured and
   counted. Built with -D…="…": files with the words of the shaders. */
#include "vulkan_common.h"

enum { SIDE = 64, CAPTURED = 512, STRIDE = 28, MOST = 15 }; /* vertices that the buffer of captured ones has room for */
enum { PICTURE_QUERY, FEEDBACK_QUERY, QUERIES };
static const uint32_t VERTEX_WORDS[] = {
#include VERTEX
};
static const uint32_t CONTROL_WORDS[] = {
#include CONTROL
};
static const uint32_t EVALUATION_WORDS[] = {
#include EVALUATION
};
static const uint32_t GEOMETRY_WORDS[] = {
#include GEOMETRY
};
static const uint32_t FRAGMENT_WORDS[] = {
#include FRAGMENT
};
static const uint32_t CAPTURED_VERTEX_WORDS[] = {
#include CAPTURED_VERTEX
};
static const uint32_t CAPTURED_FRAGMENT_WORDS[] = {
#include CAPTURED_FRAGMENT
};

static int tessellates, has_geometry, captures;
static VkQueryPool pools[QUERIES];

#define DEVICE_FUNCTION(name) PFN_##name name = (PFN_##name)vkGetDeviceProcAddr(device, #name)

static void open_with_stages(void) {
    static const char *const names[] = {VK_EXT_TRANSFORM_FEEDBACK_EXTENSION_NAME};
    VkPhysicalDeviceTransformFeedbackFeaturesEXT feedback = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TRANSFORM_FEEDBACK_FEATURES_EXT, .transformFeedback = VK_TRUE};
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &feedback,
        {.geometryShader = VK_TRUE, .tessellationShader = VK_TRUE, .pipelineStatisticsQuery = VK_TRUE}};
    open_device_with(&features, 1, names);
}

static VkRenderPass make_pass(void) {
    VkRenderPass pass;
    VkAttachmentDescription attachment = {0, VK_FORMAT_R8G8B8A8_UNORM, VK_SAMPLE_COUNT_1_BIT, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_ATTACHMENT_STORE_OP_STORE,
        VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL};
    VkAttachmentReference colour = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
    VkSubpassDescription subpass = {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS, .colorAttachmentCount = 1, .pColorAttachments = &colour};
    VkSubpassDependency resumes = {0, 0, VK_PIPELINE_STAGE_TRANSFORM_FEEDBACK_BIT_EXT, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT,
        VK_ACCESS_TRANSFORM_FEEDBACK_COUNTER_WRITE_BIT_EXT, VK_ACCESS_TRANSFORM_FEEDBACK_COUNTER_READ_BIT_EXT};
    VkRenderPassCreateInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .attachmentCount = 1, .pAttachments = &attachment, .subpassCount = 1,
        .pSubpasses = &subpass, .dependencyCount = captures, .pDependencies = &resumes};
    CALL(vkCreateRenderPass, device, &info, NULL, &pass);
    return pass;
}

static VkPipelineShaderStageCreateInfo make_stage(VkShaderStageFlagBits stage, const uint32_t *words, size_t size) {
    VkShaderModule module;
    VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = size, .pCode = words};
    CALL(vkCreateShaderModule, device, &info, NULL, &module);
    return (VkPipelineShaderStageCreateInfo){VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = stage, .module = module, .pName = "main"};
}

#define STAGE(stage, words) make_stage(VK_SHADER_STAGE_##stage##_BIT, words, sizeof words)

static uint32_t make_stages(VkPipelineShaderStageCreateInfo *stages) {
    uint32_t count = 2;
    stages[0] = captures ? STAGE(VERTEX, CAPTURED_VERTEX_WORDS) : STAGE(VERTEX, VERTEX_WORDS);
    stages[1] = captures ? STAGE(FRAGMENT, CAPTURED_FRAGMENT_WORDS) : STAGE(FRAGMENT, FRAGMENT_WORDS);
    if (tessellates) {
        stages[count++] = STAGE(TESSELLATION_CONTROL, CONTROL_WORDS);
        stages[count++] = STAGE(TESSELLATION_EVALUATION, EVALUATION_WORDS);
    }
    if (has_geometry)
        stages[count++] = STAGE(GEOMETRY, GEOMETRY_WORDS);
    return count;
}

static VkPipeline make_pipeline(VkRenderPass pass, VkPrimitiveTopology topology) {
    VkPipeline pipeline;
    VkPipelineLayout layout;
    VkPipelineShaderStageCreateInfo stages[5];
    VkPipelineLayoutCreateInfo empty = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    CALL(vkCreatePipelineLayout, device, &empty, NULL, &layout);
    VkPipelineVertexInputStateCreateInfo input = {VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    VkPipelineInputAssemblyStateCreateInfo assembly = {VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = topology};
    VkPipelineTessellationStateCreateInfo patches = {VK_STRUCTURE_TYPE_PIPELINE_TESSELLATION_STATE_CREATE_INFO, .patchControlPoints = 4};
    VkViewport viewport = {0, 0, SIDE, SIDE, 0, 1};
    VkRect2D scissor = {{0, 0}, {SIDE, SIDE}};
    VkPipelineViewportStateCreateInfo views = {VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .pViewports = &viewport,
        .scissorCount = 1, .pScissors = &scissor};
    VkPipelineRasterizationStateCreateInfo raster = {VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1};
    VkPipelineMultisampleStateCreateInfo samples = {VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = 1};
    VkPipelineColorBlendAttachmentState blend = {.colorWriteMask = 15};
    VkPipelineColorBlendStateCreateInfo blends = {VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &blend};
    VkGraphicsPipelineCreateInfo info = {VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, .stageCount = make_stages(stages), .pStages = stages,
        .pVertexInputState = &input, .pInputAssemblyState = &assembly, .pTessellationState = tessellates ? &patches : NULL,
        .pViewportState = &views, .pRasterizationState = &raster, .pMultisampleState = &samples, .pColorBlendState = &blends, .layout = layout,
        .renderPass = pass};
    CALL(vkCreateGraphicsPipelines, device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline);
    return pipeline;
}

static void make_queries(void) {
    VkQueryPoolCreateInfo statistics = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_PIPELINE_STATISTICS, .queryCount = 1,
        .pipelineStatistics = VK_QUERY_PIPELINE_STATISTIC_GEOMETRY_SHADER_INVOCATIONS_BIT | VK_QUERY_PIPELINE_STATISTIC_GEOMETRY_SHADER_PRIMITIVES_BIT |
            VK_QUERY_PIPELINE_STATISTIC_CLIPPING_INVOCATIONS_BIT | VK_QUERY_PIPELINE_STATISTIC_TESSELLATION_CONTROL_SHADER_PATCHES_BIT};
    VkQueryPoolCreateInfo streams = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TRANSFORM_FEEDBACK_STREAM_EXT, .queryCount = 2};
    CALL(vkCreateQueryPool, device, &statistics, NULL, &pools[PICTURE_QUERY]);
    CALL(vkCreateQueryPool, device, &streams, NULL, &pools[FEEDBACK_QUERY]);
    vkCmdResetQueryPool(commands, pools[PICTURE_QUERY], 0, 1);
    vkCmdResetQueryPool(commands, pools[FEEDBACK_QUERY], 0, 2);
}

/* Captures two draws, with another one between them that is not: the counter has where to resume. The second one does not fit. */
static void capture(Buffer captured, Buffer counter) {
    DEVICE_FUNCTION(vkCmdBindTransformFeedbackBuffersEXT);
    DEVICE_FUNCTION(vkCmdBeginTransformFeedbackEXT);
    DEVICE_FUNCTION(vkCmdEndTransformFeedbackEXT);
    VkDeviceSize start = 64, size = MOST * STRIDE, zero = 0;
    vkCmdBindTransformFeedbackBuffersEXT(commands, 0, 1, &captured.buffer, &start, &size);
    vkCmdBeginQuery(commands, pools[FEEDBACK_QUERY], 0, 0);
    vkCmdBeginTransformFeedbackEXT(commands, 0, 0, NULL, NULL);
    vkCmdDraw(commands, 6, 1, 0, 0);
    vkCmdEndTransformFeedbackEXT(commands, 0, 1, &counter.buffer, &zero);
    vkCmdEndQuery(commands, pools[FEEDBACK_QUERY], 0);
    vkCmdDraw(commands, 6, 1, 3, 0);
    VkMemoryBarrier resumed = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFORM_FEEDBACK_COUNTER_WRITE_BIT_EXT,
        VK_ACCESS_TRANSFORM_FEEDBACK_COUNTER_READ_BIT_EXT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFORM_FEEDBACK_BIT_EXT, VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT, 0, 1,
                         &resumed, 0, NULL, 0, NULL);
    vkCmdBeginQuery(commands, pools[FEEDBACK_QUERY], 1, 0);
    vkCmdBeginTransformFeedbackEXT(commands, 0, 1, &counter.buffer, &zero);
    vkCmdDraw(commands, 12, 1, 6, 0);
    vkCmdEndTransformFeedbackEXT(commands, 0, 1, &counter.buffer, &zero);
    vkCmdEndQuery(commands, pools[FEEDBACK_QUERY], 1);
}

static void record(VkRenderPass pass, VkFramebuffer framebuffer, VkPipeline pipeline, Buffer captured, Buffer counter) {
    VkClearValue value = {.color = {{0.2f, 0.32f, 0.4f, 1}}};
    VkRenderPassBeginInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, .renderPass = pass, .framebuffer = framebuffer,
        .renderArea = {{0, 0}, {SIDE, SIDE}}, .clearValueCount = 1, .pClearValues = &value};
    make_queries();
    vkCmdBeginRenderPass(commands, &info, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
    vkCmdBeginQuery(commands, pools[PICTURE_QUERY], 0, 0);
    if (captures)
        capture(captured, counter);
    else
        vkCmdDraw(commands, 12, 1, 0, 0);
    vkCmdEndQuery(commands, pools[PICTURE_QUERY], 0);
    vkCmdEndRenderPass(commands);
}

static void print_results(const char *scene, Buffer captured, Buffer counter) {
    uint64_t found[4] = {0};
    CALL(vkGetQueryPoolResults, device, pools[PICTURE_QUERY], 0, 1, sizeof found, found, sizeof found, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    fprintf(stderr, "%s: %d geometry shader invocations\n", scene, (int)found[0]); /* lavapipe does not count instances */
    printf("%s: %d primitives, %d objects to clip, %d patches\n", scene, (int)found[1], (int)found[2], (int)found[3]);
    if (!captures)
        return;
    CALL(vkGetQueryPoolResults, device, pools[FEEDBACK_QUERY], 0, 2, sizeof found, found, 16, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    for (int i = 0; i < 4; i += 2)
        printf("%d of %d primitives written\n", (int)found[i], (int)found[i + 1]);
    printf("%d bytes\n", *(int *)counter.data);
    for (int i = 0; i < CAPTURED / 4; i++)
        printf("%g%c", ((float *)captured.data)[i] + 0., i % 16 == 15 ? '\n' : ' ');
}

static void write_picture(const char *file, Buffer pixels) {
    FILE *out = fopen(file, "wb");
    if (!out || fprintf(out, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", SIDE, SIDE) < 0 ||
        fwrite(pixels.data, 1, pixels.size, out) != pixels.size || fclose(out)) {
        perror(file);
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count != 3)
        return fprintf(stderr, "usage: vulkan_geometry SCENE FILE\n"), 2;
    const char *scene = arguments[1];
    tessellates = !strncmp(scene, "tessellat", 9), has_geometry = !!strstr(scene, "geometry"), captures = !strcmp(scene, "feedback");
    open_with_stages();
    Image colour = make_image(VK_FORMAT_R8G8B8A8_UNORM, SIDE, SIDE, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, VK_IMAGE_TILING_OPTIMAL);
    VkImageView view = make_view(colour);
    VkRenderPass pass = make_pass();
    VkFramebuffer framebuffer;
    VkFramebufferCreateInfo frame = {VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .renderPass = pass, .attachmentCount = 1, .pAttachments = &view,
        .width = SIDE, .height = SIDE, .layers = 1};
    CALL(vkCreateFramebuffer, device, &frame, NULL, &framebuffer);
    Buffer pixels = make_buffer(4 * SIDE * SIDE), captured = make_buffer_for(CAPTURED, VK_BUFFER_USAGE_TRANSFORM_FEEDBACK_BUFFER_BIT_EXT),
           counter = make_buffer_for(64, VK_BUFFER_USAGE_TRANSFORM_FEEDBACK_COUNTER_BUFFER_BIT_EXT);
    begin();
    record(pass, framebuffer, make_pipeline(pass, tessellates ? VK_PRIMITIVE_TOPOLOGY_PATCH_LIST : VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST), captured, counter);
    barrier();
    image_to_buffer(colour, pixels, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    barrier();
    submit_and_wait();
    print_results(scene, captured, counter);
    write_picture(arguments[2], pixels);
    return 0;
}
