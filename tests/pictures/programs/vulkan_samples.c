/* Draws to images with several samples of a pixel with Vulkan and writes the picture as a PAM file, top row first.

       vulkan_samples SCENE:SAMPLES FILE

   resolved  triangles that go through each other, resolved at the end of the render pass
   copied    the same, resolved by vkCmdResolveImage
   masked    the same, with a sample mask of the pipeline and one of the shader
   shaded    a shader that runs for each sample, whose colour tells the sample's number
   fetched   the same, and a second pass that shows the sample of pixel (x, y) with number x + 3 y
   Prints the counts that colour and depth images may have, and samples that pass the depth test. Built with -D…="…": files with the words
   of the shaders. */
#include "vulkan_common.h"

enum { SIDE = 64, VERTICES = 9 };
static const uint32_t VERTEX_WORDS[] = {
#include VERTEX
};
static const uint32_t FRAGMENT_WORDS[] = {
#include FRAGMENT
};
static const uint32_t SAMPLE_FRAGMENT_WORDS[] = {
#include SAMPLE_FRAGMENT
};
static const uint32_t SCREEN_WORDS[] = {
#include SCREEN
};
static const uint32_t FETCH_WORDS[] = {
#include FETCH
};

static const char *scene;
static uint32_t samples;
static VkQueryPool queries;

static int is(const char *name) { return !strcmp(scene, name); }

/* An image with samples, or with one. */
static Image make_target(VkFormat format, uint32_t count, VkImageUsageFlags usage) {
    int depth = usage & VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    Image made = {.format = format, .width = SIDE, .height = SIDE, .aspect = depth ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT};
    VkMemoryRequirements needs;
    VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = format, .extent = {SIDE, SIDE, 1},
        .mipLevels = 1, .arrayLayers = 1, .samples = count, .tiling = VK_IMAGE_TILING_OPTIMAL, .usage = usage};
    CALL(vkCreateImage, device, &info, NULL, &made.image);
    vkGetImageMemoryRequirements(device, made.image, &needs);
    CALL(vkBindImageMemory, device, made.image, allocate_memory(needs, 0), 0);
    return made;
}

static VkAttachmentDescription attachment(VkFormat format, uint32_t count, VkAttachmentLoadOp load, VkImageLayout last) {
    return (VkAttachmentDescription){0, format, count, load, VK_ATTACHMENT_STORE_OP_STORE, VK_ATTACHMENT_LOAD_OP_DONT_CARE,
        VK_ATTACHMENT_STORE_OP_DONT_CARE, VK_IMAGE_LAYOUT_UNDEFINED, last};
}

/* Colour and depth with samples and, where the pass resolves, the picture. */
static VkRenderPass make_sample_pass(VkFormat depth, int resolves, VkImageLayout last) {
    VkRenderPass pass;
    VkAttachmentDescription all[3] = {attachment(VK_FORMAT_R8G8B8A8_UNORM, samples, VK_ATTACHMENT_LOAD_OP_CLEAR, last),
        attachment(depth, samples, VK_ATTACHMENT_LOAD_OP_CLEAR, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL),
        attachment(VK_FORMAT_R8G8B8A8_UNORM, 1, VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL)};
    VkAttachmentReference colour = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL}, picture = {2, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL},
        zeta = {1, VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL};
    VkSubpassDescription subpass = {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS, .colorAttachmentCount = 1, .pColorAttachments = &colour,
        .pResolveAttachments = resolves ? &picture : NULL, .pDepthStencilAttachment = &zeta};
    VkRenderPassCreateInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .attachmentCount = 2 + resolves, .pAttachments = all,
        .subpassCount = 1, .pSubpasses = &subpass};
    CALL(vkCreateRenderPass, device, &info, NULL, &pass);
    return pass;
}

static VkRenderPass make_picture_pass(void) {
    VkRenderPass pass;
    VkAttachmentDescription picture = attachment(VK_FORMAT_R8G8B8A8_UNORM, 1, VK_ATTACHMENT_LOAD_OP_DONT_CARE, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    VkAttachmentReference colour = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
    VkSubpassDescription subpass = {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS, .colorAttachmentCount = 1, .pColorAttachments = &colour};
    VkRenderPassCreateInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .attachmentCount = 1, .pAttachments = &picture, .subpassCount = 1,
        .pSubpasses = &subpass};
    CALL(vkCreateRenderPass, device, &info, NULL, &pass);
    return pass;
}

static VkFramebuffer make_framebuffer(VkRenderPass pass, uint32_t count, const VkImageView *views) {
    VkFramebuffer framebuffer;
    VkFramebufferCreateInfo info = {VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .renderPass = pass, .attachmentCount = count, .pAttachments = views,
        .width = SIDE, .height = SIDE, .layers = 1};
    CALL(vkCreateFramebuffer, device, &info, NULL, &framebuffer);
    return framebuffer;
}

static VkPipelineShaderStageCreateInfo make_stage(VkShaderStageFlagBits stage, const uint32_t *words, size_t size) {
    VkShaderModule module;
    VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = size, .pCode = words};
    CALL(vkCreateShaderModule, device, &info, NULL, &module);
    return (VkPipelineShaderStageCreateInfo){VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = stage, .module = module, .pName = "main"};
}

#define STAGE(stage, words) make_stage(VK_SHADER_STAGE_##stage##_BIT, words, sizeof words)

/* A pipeline of two shaders; `count` samples and a depth test, or one sample and none. */
static VkPipeline make_pipeline(VkRenderPass pass, VkPipelineLayout layout, VkPipelineShaderStageCreateInfo *stages, uint32_t count) {
    VkPipeline pipeline;
    VkSampleMask mask = is("masked") ? 0x5a5b : ~0u;
    VkPipelineVertexInputStateCreateInfo input = {VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
    VkPipelineInputAssemblyStateCreateInfo assembly = {VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
    VkViewport viewport = {0, 0, SIDE, SIDE, 0, 1};
    VkRect2D scissor = {{0, 0}, {SIDE, SIDE}};
    VkPipelineViewportStateCreateInfo views = {VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .pViewports = &viewport,
        .scissorCount = 1, .pScissors = &scissor};
    VkPipelineRasterizationStateCreateInfo raster = {VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1};
    VkPipelineMultisampleStateCreateInfo many = {VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = count,
        .pSampleMask = count > 1 ? &mask : NULL};
    VkPipelineDepthStencilStateCreateInfo depth = {VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO, .depthTestEnable = count > 1,
        .depthWriteEnable = count > 1, .depthCompareOp = VK_COMPARE_OP_LESS};
    VkPipelineColorBlendAttachmentState blend = {.colorWriteMask = 15};
    VkPipelineColorBlendStateCreateInfo blends = {VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &blend};
    VkGraphicsPipelineCreateInfo info = {VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, .stageCount = 2, .pStages = stages, .pVertexInputState = &input,
        .pInputAssemblyState = &assembly, .pViewportState = &views, .pRasterizationState = &raster, .pMultisampleState = &many,
        .pDepthStencilState = &depth, .pColorBlendState = &blends, .layout = layout, .renderPass = pass};
    CALL(vkCreateGraphicsPipelines, device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline);
    return pipeline;
}

/* The layout of a set with one sampled image. */
static VkDescriptorSetLayout make_set_layout(void) {
    VkDescriptorSetLayout layout;
    VkDescriptorSetLayoutBinding binding = {0, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1, VK_SHADER_STAGE_FRAGMENT_BIT, NULL};
    VkDescriptorSetLayoutCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &binding};
    CALL(vkCreateDescriptorSetLayout, device, &info, NULL, &layout);
    return layout;
}

static VkDescriptorSet make_set(VkDescriptorSetLayout layout, VkImageView view) {
    VkDescriptorPool pool;
    VkDescriptorSet set;
    VkSampler sampler;
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1};
    VkDescriptorPoolCreateInfo pools = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size};
    CALL(vkCreateDescriptorPool, device, &pools, NULL, &pool);
    VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL, pool, 1, &layout};
    CALL(vkAllocateDescriptorSets, device, &allocate, &set);
    VkSamplerCreateInfo plain = {VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    CALL(vkCreateSampler, device, &plain, NULL, &sampler);
    VkDescriptorImageInfo image = {sampler, view, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, set, 0, 0, 1, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, .pImageInfo = &image};
    vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    return set;
}

static VkPipelineLayout make_layout(VkDescriptorSetLayout *sets) {
    VkPipelineLayout layout;
    VkPipelineLayoutCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = sets != NULL, .pSetLayouts = sets};
    CALL(vkCreatePipelineLayout, device, &info, NULL, &layout);
    return layout;
}

static void draw(VkRenderPass pass, VkFramebuffer framebuffer, VkPipeline pipeline, uint32_t vertices) {
    VkClearValue values[2] = {{.color = {{0.2f, 0.32f, 0.4f, 1}}}, {.depthStencil = {0.85f, 0}}};
    VkRenderPassBeginInfo info = {VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, .renderPass = pass, .framebuffer = framebuffer,
        .renderArea = {{0, 0}, {SIDE, SIDE}}, .clearValueCount = 2, .pClearValues = values};
    vkCmdBeginRenderPass(commands, &info, VK_SUBPASS_CONTENTS_INLINE);
    vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
    vkCmdBeginQuery(commands, queries, vertices == VERTICES ? 0 : 1, VK_QUERY_CONTROL_PRECISE_BIT);
    vkCmdDraw(commands, vertices, 1, 0, 0);
    vkCmdEndQuery(commands, queries, vertices == VERTICES ? 0 : 1);
    vkCmdEndRenderPass(commands);
}

/* Draws the triangles; where `picture` is among the views of the pass, it is resolved to, too. */
static void draw_triangles(VkFormat depth, const VkImageView *views, int resolves, VkImageLayout last) {
    uint32_t masks = is("masked");
    VkSpecializationMapEntry entry = {0, 0, 4};
    VkSpecializationInfo constants = {1, &entry, sizeof masks, &masks};
    VkPipelineShaderStageCreateInfo stages[2] = {STAGE(VERTEX, VERTEX_WORDS), STAGE(FRAGMENT, FRAGMENT_WORDS)};
    stages[1].pSpecializationInfo = &constants;
    if (is("shaded") || is("fetched"))
        stages[1] = STAGE(FRAGMENT, SAMPLE_FRAGMENT_WORDS);
    VkRenderPass pass = make_sample_pass(depth, resolves, last);
    draw(pass, make_framebuffer(pass, 2 + resolves, views), make_pipeline(pass, make_layout(NULL), stages, samples), VERTICES);
}

static void draw_fetched(VkImageView source, VkImageView picture) {
    VkDescriptorSetLayout sets = make_set_layout();
    VkPipelineLayout layout = make_layout(&sets);
    VkDescriptorSet set = make_set(sets, source);
    VkSpecializationMapEntry entry = {0, 0, 4};
    VkSpecializationInfo constants = {1, &entry, sizeof samples, &samples};
    VkPipelineShaderStageCreateInfo stages[2] = {STAGE(VERTEX, SCREEN_WORDS), STAGE(FRAGMENT, FETCH_WORDS)};
    stages[1].pSpecializationInfo = &constants;
    VkRenderPass pass = make_picture_pass();
    vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, layout, 0, 1, &set, 0, NULL);
    draw(pass, make_framebuffer(pass, 1, &picture), make_pipeline(pass, layout, stages, 1), 3);
}

static void print_results(void) {
    uint64_t passed;
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(physical, &properties);
    CALL(vkGetQueryPoolResults, device, queries, 0, 1, sizeof passed, &passed, sizeof passed, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    printf("counts %u, %d samples pass\n", properties.limits.framebufferColorSampleCounts & properties.limits.framebufferDepthSampleCounts, (int)passed);
}

static void write_picture(const char *file, Buffer pixels) {
    FILE *out = fopen(file, "wb");
    if (!out || fprintf(out, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", SIDE, SIDE) < 0 ||
        fwrite(pixels.data, 1, pixels.size, out) != pixels.size || fclose(out)) {
        perror(file);
        exit(1);
    }
}

static void record(Image colour, Image zeta, Image picture) {
    VkImageView views[3] = {make_view(colour), make_view(zeta), make_view(picture)};
    VkImageResolve whole = {{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, {0}, {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, {0}, {SIDE, SIDE, 1}};
    vkCmdResetQueryPool(commands, queries, 0, 2);
    if (is("fetched")) {
        draw_triangles(zeta.format, views, 0, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
        barrier();
        draw_fetched(views[0], views[2]);
    } else if (is("copied")) {
        draw_triangles(zeta.format, views, 0, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
        barrier();
        to_layout(picture, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
        vkCmdResolveImage(commands, colour.image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, picture.image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &whole);
        to_layout(picture, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    } else
        draw_triangles(zeta.format, views, 1, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL);
    barrier();
}

int main(int count, char **arguments) {
    char *colon = count == 3 ? strchr(arguments[1], ':') : NULL;
    if (!colon)
        return fprintf(stderr, "usage: vulkan_samples SCENE:SAMPLES FILE\n"), 2;
    *colon = 0, scene = arguments[1], samples = atoi(colon + 1);
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .features = {.sampleRateShading = VK_TRUE, .occlusionQueryPrecise = VK_TRUE}};
    open_device_with(&features, 0, NULL);
    Image colour = make_target(VK_FORMAT_R8G8B8A8_UNORM, samples, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT |
                               (is("fetched") ? VK_IMAGE_USAGE_SAMPLED_BIT : 0));
    Image zeta = make_target(VK_FORMAT_D32_SFLOAT, samples, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT);
    Image picture = make_image(VK_FORMAT_R8G8B8A8_UNORM, SIDE, SIDE, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, VK_IMAGE_TILING_OPTIMAL);
    Buffer pixels = make_buffer(4 * SIDE * SIDE);
    VkQueryPoolCreateInfo info = {VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_OCCLUSION, .queryCount = 2};
    CALL(vkCreateQueryPool, device, &info, NULL, &queries);
    begin();
    record(colour, zeta, picture);
    image_to_buffer(picture, pixels, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    barrier();
    submit_and_wait();
    print_results();
    write_picture(arguments[2], pixels);
    return 0;
}
