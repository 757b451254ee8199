/* Draws a triangle with Vulkan into an image, copies the image into a buffer and writes it as a PAM file, top row first.

       vulkan_scene SCENE FILE [width=64] [height=64] [clear=0.2,0.32,0.4,1]

   Scenes: clear, triangle (vertices from a buffer), crossing (two triangles with a depth test), instanced (four, each moved by its number),
   blended. Built with -DVERTEX="…" -DFRAGMENT="…": files with the words of the shaders. */
#include "vulkan_common.h"

static const uint32_t VERTEX_WORDS[] = {
#include VERTEX
};
static const uint32_t FRAGMENT_WORDS[] = {
#include FRAGMENT
};

typedef struct {
    float position[4], colour[4];
} Vertex;

static const Vertex TRIANGLE[3] = {
    {{-0.8f, 0.7f, 0.5f, 1}, {1, 0, 0, 1}}, {{0.9f, 0.5f, 0.5f, 1}, {0, 1, 0, 1}}, {{0.1f, -0.85f, 0.5f, 1}, {0, 0, 1, 0.5f}},
};
static const Vertex CROSSING[6] = {
    {{-0.9f, 0.8f, 0.1f, 1}, {1, 0, 0, 1}},  {{0.9f, 0.6f, 0.9f, 1}, {1, 0, 0, 1}},  {{-0.2f, -0.9f, 0.5f, 1}, {1, 0.5f, 0, 1}},
    {{-0.7f, -0.8f, 0.8f, 1}, {0, 0, 1, 1}}, {{0.8f, -0.7f, 0.2f, 1}, {0, 1, 1, 1}}, {{0.1f, 0.9f, 0.5f, 1}, {0, 0, 1, 1}},
};

static int width = 64, height = 64;
static float clear[4] = {0.2f, 0.32f, 0.4f, 1.0f};
static const char *scene;

static int is(const char *name) { return !strcmp(scene, name); }

static VkRenderPass make_pass(int depth) {
    VkRenderPass pass;
    VkAttachmentDescription attachments[2] = {
        {0, VK_FORMAT_R8G8B8A8_UNORM, VK_SAMPLE_COUNT_1_BIT, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_ATTACHMENT_STORE_OP_STORE,
         VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL},
        {0, VK_FORMAT_D32_SFLOAT, VK_SAMPLE_COUNT_1_BIT, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_ATTACHMENT_STORE_OP_DONT_CARE,
         VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_ATTACHMENT_STORE_OP_DONT_CARE, VK_IMAGE_LAYOUT_UNDEFINED,
         VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL},
    };
    VkAttachmentReference colour = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL}, z = {1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
    VkSubpassDescription subpass = {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS, .colorAttachmentCount = 1, .pColorAttachments = &colour,
        .pDepthStencilAttachment = depth ? &z : NULL};
    VkRenderPassCreateInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .attachmentCount = 1 + depth, .pAttachments = attachments,
        .subpassCount = 1, .pSubpasses = &subpass};
    CALL(vkCreateRenderPass, device, &info, NULL, &pass);
    return pass;
}

static VkPipelineShaderStageCreateInfo make_stage(VkShaderStageFlagBits stage, const uint32_t *words, size_t size) {
    VkShaderModule module;
    VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = size, .pCode = words};
    CALL(vkCreateShaderModule, device, &info, NULL, &module);
    return (VkPipelineShaderStageCreateInfo){VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = stage, .module = module, .pName = "main"};
}

static VkPipeline make_pipeline(VkRenderPass pass, int depth) {
    VkPipeline pipeline;
    VkPipelineLayout layout;
    VkPipelineLayoutCreateInfo empty = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
    CALL(vkCreatePipelineLayout, device, &empty, NULL, &layout);
    VkPipelineShaderStageCreateInfo stages[2] = {make_stage(VK_SHADER_STAGE_VERTEX_BIT, VERTEX_WORDS, sizeof VERTEX_WORDS),
                                                 make_stage(VK_SHADER_STAGE_FRAGMENT_BIT, FRAGMENT_WORDS, sizeof FRAGMENT_WORDS)};
    VkVertexInputBindingDescription binding = {0, sizeof(Vertex), VK_VERTEX_INPUT_RATE_VERTEX};
    VkVertexInputAttributeDescription attributes[2] = {{0, 0, VK_FORMAT_R32G32B32A32_SFLOAT, 0}, {1, 0, VK_FORMAT_R32G32B32A32_SFLOAT, 16}};
    VkPipelineVertexInputStateCreateInfo input = {VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO, .vertexBindingDescriptionCount = 1,
        .pVertexBindingDescriptions = &binding, .vertexAttributeDescriptionCount = 2, .pVertexAttributeDescriptions = attributes};
    VkPipelineInputAssemblyStateCreateInfo assembly = {VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
    VkViewport viewport = {0, 0, width, height, 0, 1};
    VkRect2D scissor = {{0, 0}, {width, height}};
    VkPipelineViewportStateCreateInfo views = {VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .pViewports = &viewport,
        .scissorCount = 1, .pScissors = &scissor};
    VkPipelineRasterizationStateCreateInfo raster = {VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1};
    VkPipelineMultisampleStateCreateInfo samples = {VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = 1};
    VkPipelineDepthStencilStateCreateInfo test = {VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO, .depthTestEnable = depth,
        .depthWriteEnable = depth, .depthCompareOp = VK_COMPARE_OP_LESS};
    VkPipelineColorBlendAttachmentState blend = {.colorWriteMask = 15, .blendEnable = is("blended"),
        .srcColorBlendFactor = VK_BLEND_FACTOR_SRC_ALPHA, .dstColorBlendFactor = VK_BLEND_FACTOR_ONE_MINUS_SRC_ALPHA,
        .srcAlphaBlendFactor = VK_BLEND_FACTOR_ONE, .dstAlphaBlendFactor = VK_BLEND_FACTOR_ZERO};
    VkPipelineColorBlendStateCreateInfo blends = {VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &blend};
    VkGraphicsPipelineCreateInfo info = {VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, .stageCount = 2, .pStages = stages,
        .pVertexInputState = &input, .pInputAssemblyState = &assembly, .pViewportState = &views, .pRasterizationState = &raster,
        .pMultisampleState = &samples, .pDepthStencilState = &test, .pColorBlendState = &blends, .layout = layout, .renderPass = pass};
    CALL(vkCreateGraphicsPipelines, device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline);
    return pipeline;
}

static void record(VkRenderPass pass, VkFramebuffer framebuffer, VkPipeline pipeline, Buffer vertices) {
    VkClearValue values[2] = {{.color = {{clear[0], clear[1], clear[2], clear[3]}}}, {.depthStencil = {1, 0}}};
    VkRenderPassBeginInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, .renderPass = pass, .framebuffer = framebuffer,
        .renderArea = {{0, 0}, {width, height}}, .clearValueCount = 2, .pClearValues = values};
    VkDeviceSize start = 0;
    vkCmdBeginRenderPass(commands, &info, VK_SUBPASS_CONTENTS_INLINE);
    if (!is("clear")) {
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
        vkCmdBindVertexBuffers(commands, 0, 1, &vertices.buffer, &start);
        vkCmdDraw(commands, vertices.size / sizeof(Vertex), is("instanced") ? 4 : 1, 0, 0);
    }
    vkCmdEndRenderPass(commands);
}

static void write_picture(const char *file, Buffer pixels) {
    FILE *out = fopen(file, "wb");
    if (!out || fprintf(out, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", width, height) < 0 ||
        fwrite(pixels.data, 1, pixels.size, out) != pixels.size || fclose(out)) {
        perror(file);
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count < 3)
        return fprintf(stderr, "vulkan_scene SCENE FILE [OPTION…]\n"), 2;
    scene = arguments[1];
    for (int i = 3; i < count; i++)
        if (sscanf(arguments[i], "width=%d", &width) != 1 && sscanf(arguments[i], "height=%d", &height) != 1 &&
            sscanf(arguments[i], "clear=%f,%f,%f,%f", clear, clear + 1, clear + 2, clear + 3) != 4)
            return fprintf(stderr, "vulkan_scene: no option %s\n", arguments[i]), 2;
    int depth = is("crossing");
    open_device();
    Image colour = make_image(VK_FORMAT_R8G8B8A8_UNORM, width, height, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, VK_IMAGE_TILING_OPTIMAL);
    VkImageView views[2] = {make_view(colour)};
    if (depth)
        views[1] = make_view(make_image(VK_FORMAT_D32_SFLOAT, width, height, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, VK_IMAGE_TILING_OPTIMAL));
    VkRenderPass pass = make_pass(depth);
    VkFramebuffer framebuffer;
    VkFramebufferCreateInfo frame = {VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .renderPass = pass, .attachmentCount = 1 + depth,
        .pAttachments = views, .width = width, .height = height, .layers = 1};
    CALL(vkCreateFramebuffer, device, &frame, NULL, &framebuffer);
    Buffer pixels = make_buffer(4 * width * height), vertices = make_buffer(depth ? sizeof CROSSING : sizeof TRIANGLE);
    memcpy(vertices.data, depth ? CROSSING : TRIANGLE, vertices.size);
    begin();
    record(pass, framebuffer, make_pipeline(pass, depth), vertices);
    barrier();
    image_to_buffer(colour, pixels, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    barrier();
    submit_and_wait();
    write_picture(arguments[2], pixels);
    return 0;
}
