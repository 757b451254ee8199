/* Dispatches and draws of vulkan_formats.c: one pipeline, one set of descriptors each. */

static const float CENTRE[4] = {0.5f, 0.5f, 0.5f, 0.5f}, BETWEEN[4] = {0.75f, 0.875f, 0.75f, 0.5f};

static inline void bind(VkPipelineBindPoint point, VkPipelineLayout pipeline_layout, VkPipeline pipeline, VkDescriptorSet set, VkExtent3D size, const float *offset) {
    struct {
        int32_t size[4];
        float offset[4];
    } parameters = {{size.width, size.height, size.depth, 0}, {offset[0], offset[1], offset[2], offset[3]}};
    vkCmdBindPipeline(commands, point, pipeline);
    vkCmdBindDescriptorSets(commands, point, pipeline_layout, 0, 1, &set, 0, NULL);
    vkCmdPushConstants(commands, pipeline_layout, VK_SHADER_STAGE_ALL, 0, sizeof parameters, &parameters);
}

/* A set of the buffer of texels and, unless it is NULL, of what is bound. */
static inline VkDescriptorSet make_set(VkDescriptorSetLayout layout, Buffer texels, const VkWriteDescriptorSet *bound) {
    VkDescriptorSet set;
    VkDescriptorSetAllocateInfo allocate = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL, descriptor_pool, 1, &layout};
    CALL(vkAllocateDescriptorSets, device, &allocate, &set);
    VkDescriptorBufferInfo all = {texels.buffer, 0, VK_WHOLE_SIZE};
    VkWriteDescriptorSet writes[2] = {
        {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, NULL, set, 1, 0, 1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &all}};
    if (bound) {
        writes[1] = *bound;
        writes[1].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, writes[1].dstSet = set, writes[1].descriptorCount = 1;
    }
    vkUpdateDescriptorSets(device, bound ? 2 : 1, writes, 0, NULL);
    return set;
}

/* Runs a shader over texels, with an image or a texel buffer bound. */
static inline void dispatch(const char *shader, uint32_t image_format, VkExtent3D size, Buffer texels, const VkWriteDescriptorSet *bound, const float *offset,
                     const VkSampler *immutable) {
    VkPipeline pipeline;
    VkDescriptorSetLayout sets = make_set_layout(bound->dstBinding, bound->descriptorType, immutable);
    VkPipelineLayout layout = make_pipeline_layout(sets);
    VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
        .stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, NULL, 0, VK_SHADER_STAGE_COMPUTE_BIT, load_shader(shader, image_format), "main"}};
    CALL(vkCreateComputePipelines, device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline);
    keep(VK_OBJECT_TYPE_PIPELINE, &pipeline);
    bind(VK_PIPELINE_BIND_POINT_COMPUTE, layout, pipeline, make_set(sets, texels, bound), size, offset);
    vkCmdDispatch(commands, (size.width * size.height * size.depth + 7) / 8, 1, 1);
    barrier();
}

/* How to draw: with points that have an attribute, or a triangle that covers the target. */
typedef struct {
    const VkVertexInputAttributeDescription *attribute;
    uint32_t stride;
    int blends;
    const float *offset;
} Drawing;

static inline VkPipeline make_pipeline(const char *vertex, const char *fragment, Image target, Drawing how, VkPipelineLayout layout) {
    VkPipeline made;
    VkPipelineShaderStageCreateInfo stages[2] = {
        {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, NULL, 0, VK_SHADER_STAGE_VERTEX_BIT, load_shader(vertex, 0), "main"},
        {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, NULL, 0, VK_SHADER_STAGE_FRAGMENT_BIT, fragment ? load_shader(fragment, 0) : VK_NULL_HANDLE, "main"}};
    VkVertexInputBindingDescription binding = {0, how.stride, VK_VERTEX_INPUT_RATE_VERTEX};
    VkPipelineVertexInputStateCreateInfo input = {VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO, .vertexBindingDescriptionCount = !!how.attribute,
        .pVertexBindingDescriptions = &binding, .vertexAttributeDescriptionCount = !!how.attribute, .pVertexAttributeDescriptions = how.attribute};
    VkPipelineInputAssemblyStateCreateInfo assembly = {VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
        .topology = how.attribute ? VK_PRIMITIVE_TOPOLOGY_POINT_LIST : VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
    VkViewport port = {0, 0, target.size.width, target.size.height, 0, 1};
    VkRect2D scissor = {{0, 0}, {target.size.width, target.size.height}};
    VkPipelineViewportStateCreateInfo viewport = {VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, NULL, 0, 1, &port, 1, &scissor};
    VkPipelineRasterizationStateCreateInfo raster = {VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1};
    VkPipelineMultisampleStateCreateInfo samples = {VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = 1};
    VkStencilOpState replace = {VK_STENCIL_OP_REPLACE, VK_STENCIL_OP_REPLACE, VK_STENCIL_OP_INCREMENT_AND_WRAP, VK_COMPARE_OP_ALWAYS, 255, 255, 77};
    VkPipelineDepthStencilStateCreateInfo depth = {VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO,
        .depthTestEnable = target.aspect == VK_IMAGE_ASPECT_DEPTH_BIT, .depthWriteEnable = VK_TRUE, .depthCompareOp = VK_COMPARE_OP_LESS,
        .stencilTestEnable = target.aspect == VK_IMAGE_ASPECT_STENCIL_BIT, .front = replace, .back = replace};
    VkPipelineColorBlendAttachmentState blend = {how.blends, VK_BLEND_FACTOR_ONE, VK_BLEND_FACTOR_ONE, VK_BLEND_OP_ADD, VK_BLEND_FACTOR_ONE,
        VK_BLEND_FACTOR_ONE, VK_BLEND_OP_ADD, 15};
    int coloured = target.aspect == VK_IMAGE_ASPECT_COLOR_BIT;
    VkPipelineColorBlendStateCreateInfo colours = {VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = coloured, .pAttachments = &blend};
    VkPipelineRenderingCreateInfo rendering = {VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO, .colorAttachmentCount = coloured,
        .pColorAttachmentFormats = &target.format,
        .depthAttachmentFormat = target.aspect == VK_IMAGE_ASPECT_DEPTH_BIT ? target.format : VK_FORMAT_UNDEFINED,
        .stencilAttachmentFormat = target.aspect == VK_IMAGE_ASPECT_STENCIL_BIT ? target.format : VK_FORMAT_UNDEFINED};
    VkGraphicsPipelineCreateInfo info = {VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, &rendering, .stageCount = fragment ? 2 : 1, .pStages = stages,
        .pVertexInputState = &input, .pInputAssemblyState = &assembly, .pViewportState = &viewport, .pRasterizationState = &raster,
        .pMultisampleState = &samples, .pDepthStencilState = &depth, .pColorBlendState = &colours, .layout = layout};
    CALL(vkCreateGraphicsPipelines, device, VK_NULL_HANDLE, 1, &info, NULL, &made);
    keep(VK_OBJECT_TYPE_PIPELINE, &made);
    return made;
}

static inline void draw(Image target, const char *vertex, const char *fragment, Buffer texels, Drawing how) {
    VkDescriptorSetLayout sets = make_set_layout(0, VK_DESCRIPTOR_TYPE_MAX_ENUM, NULL);
    VkPipelineLayout layout = make_pipeline_layout(sets);
    VkPipeline pipeline = make_pipeline(vertex, fragment, target, how, layout);
    VkRenderingAttachmentInfo attachment = {VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO, .imageView = make_view(target, NULL), .imageLayout = GENERAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_LOAD, .storeOp = VK_ATTACHMENT_STORE_OP_STORE};
    VkRenderingInfo info = {VK_STRUCTURE_TYPE_RENDERING_INFO, .renderArea = {{0, 0}, {target.size.width, target.size.height}}, .layerCount = 1,
        .colorAttachmentCount = target.aspect == VK_IMAGE_ASPECT_COLOR_BIT, .pColorAttachments = &attachment,
        .pDepthAttachment = target.aspect == VK_IMAGE_ASPECT_DEPTH_BIT ? &attachment : NULL,
        .pStencilAttachment = target.aspect == VK_IMAGE_ASPECT_STENCIL_BIT ? &attachment : NULL};
    VkDeviceSize start = 0;
    vkCmdBeginRendering(commands, &info);
    bind(VK_PIPELINE_BIND_POINT_GRAPHICS, layout, pipeline, make_set(sets, texels, NULL), target.size, how.offset ? how.offset : CENTRE);
    vkCmdBindVertexBuffers(commands, 0, 1, &texels.buffer, &start);
    vkCmdDraw(commands, how.attribute ? target.size.width : 3, 1, 0, 0);
    vkCmdEndRendering(commands);
    barrier();
}
