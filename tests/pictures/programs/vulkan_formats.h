/* What vulkan_formats.c needs of Vulkan: a device with every feature, objects that last for one check, and what a check leaves in buffers. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { WIDTH = 14, HEIGHT = 11, DEPTH = 2, OBJECTS = 256, OUTPUTS = 16, VALUES = WIDTH * HEIGHT * DEPTH };
#define GENERAL VK_IMAGE_LAYOUT_GENERAL

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandPool command_pool;
static VkCommandBuffer commands;
static VkDescriptorPool descriptor_pool;
static const char *folder; /* of the shaders */
static int has_doubles; /* in shaders */
static jmp_buf failed;

/* Ends the check at hand. */
static inline void check(VkResult result, const char *what) {
    if (result) {
        printf("%s: %d; ", what, result);
        longjmp(failed, result == VK_ERROR_DEVICE_LOST ? 2 : 1);
    }
}
#define CALL(function, ...) check(function(__VA_ARGS__), #function)

typedef struct {
    VkBuffer buffer;
    void *data;
    uint32_t size;
} Buffer;

typedef struct {
    VkImage image;
    VkFormat format;
    int dimensions;
    uint32_t level, layer;
    VkExtent3D size;
    VkImageAspectFlags aspect;
} Image;

static struct {
    VkObjectType type;
    uint64_t handle;
} objects[OBJECTS];
static int object_count;

static struct {
    char name[24];
    char kind; /* of the values: f, i, u, or b for bytes */
    Buffer buffer;
} outputs[OUTPUTS];
static int output_count;

static inline void keep(VkObjectType type, const void *handle) {
    if (object_count == OBJECTS)
        abort();
    objects[object_count].type = type;
    objects[object_count++].handle = *(const uint64_t *)handle;
}

static inline void free_objects(void) {
    while (object_count) {
        uint64_t handle = objects[--object_count].handle;
        switch (objects[object_count].type) {
        case VK_OBJECT_TYPE_BUFFER: vkDestroyBuffer(device, (VkBuffer)handle, NULL); break;
        case VK_OBJECT_TYPE_BUFFER_VIEW: vkDestroyBufferView(device, (VkBufferView)handle, NULL); break;
        case VK_OBJECT_TYPE_IMAGE: vkDestroyImage(device, (VkImage)handle, NULL); break;
        case VK_OBJECT_TYPE_IMAGE_VIEW: vkDestroyImageView(device, (VkImageView)handle, NULL); break;
        case VK_OBJECT_TYPE_SAMPLER: vkDestroySampler(device, (VkSampler)handle, NULL); break;
        case VK_OBJECT_TYPE_DEVICE_MEMORY: vkFreeMemory(device, (VkDeviceMemory)handle, NULL); break;
        case VK_OBJECT_TYPE_SHADER_MODULE: vkDestroyShaderModule(device, (VkShaderModule)handle, NULL); break;
        case VK_OBJECT_TYPE_PIPELINE: vkDestroyPipeline(device, (VkPipeline)handle, NULL); break;
        case VK_OBJECT_TYPE_PIPELINE_LAYOUT: vkDestroyPipelineLayout(device, (VkPipelineLayout)handle, NULL); break;
        case VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT: vkDestroyDescriptorSetLayout(device, (VkDescriptorSetLayout)handle, NULL); break;
        case VK_OBJECT_TYPE_SAMPLER_YCBCR_CONVERSION: vkDestroySamplerYcbcrConversion(device, (VkSamplerYcbcrConversion)handle, NULL); break;
        default: abort();
        }
    }
    vkResetDescriptorPool(device, descriptor_pool, 0);
}

/* A layout of the buffer of texels and, unless `type` is VK_DESCRIPTOR_TYPE_MAX_ENUM, of one other descriptor. */
static inline VkDescriptorSetLayout make_set_layout(uint32_t binding, VkDescriptorType type, const VkSampler *sampler) {
    VkShaderStageFlags stages = VK_SHADER_STAGE_COMPUTE_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
    VkDescriptorSetLayoutBinding bindings[2] = {{1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, stages, NULL}, {binding, type, 1, stages, sampler}};
    VkDescriptorSetLayoutCreateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = type == VK_DESCRIPTOR_TYPE_MAX_ENUM ? 1 : 2, .pBindings = bindings};
    VkDescriptorSetLayout made;
    CALL(vkCreateDescriptorSetLayout, device, &info, NULL, &made);
    keep(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, &made);
    return made;
}

static inline VkPipelineLayout make_pipeline_layout(VkDescriptorSetLayout set) {
    VkPushConstantRange push = {VK_SHADER_STAGE_ALL, 0, 32};
    VkPipelineLayoutCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set,
        .pushConstantRangeCount = 1, .pPushConstantRanges = &push};
    VkPipelineLayout made;
    CALL(vkCreatePipelineLayout, device, &info, NULL, &made);
    keep(VK_OBJECT_TYPE_PIPELINE_LAYOUT, &made);
    return made;
}

static inline void open_device(void) {
    float priority = 1;
    VkPhysicalDeviceVulkan13Features features13 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceVulkan12Features features12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, &features13};
    VkPhysicalDeviceVulkan11Features features11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &features12};
    VkPhysicalDeviceFeatures2 features = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &features11};
    vkGetPhysicalDeviceFeatures2(physical, &features);
    has_doubles = features.features.shaderFloat64;
    VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo make = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
    CALL(vkCreateDevice, physical, &make, NULL, &device);
    vkGetDeviceQueue(device, 0, 0, &queue);
    VkCommandPoolCreateInfo pools = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    CALL(vkCreateCommandPool, device, &pools, NULL, &command_pool);
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = command_pool, .commandBufferCount = 1};
    CALL(vkAllocateCommandBuffers, device, &allocate, &commands);
    VkDescriptorPoolSize sizes[5] = {{VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 64}, {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 64},
        {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 64}, {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, 64}, {VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, 64}};
    VkDescriptorPoolCreateInfo sets = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 16, .poolSizeCount = 5, .pPoolSizes = sizes};
    CALL(vkCreateDescriptorPool, device, &sets, NULL, &descriptor_pool);
}

static inline VkDeviceMemory allocate_memory(VkMemoryRequirements needs, VkMemoryPropertyFlags wanted) {
    VkDeviceMemory memory;
    VkPhysicalDeviceMemoryProperties kinds;
    uint32_t kind = 0;
    vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
    while (!(needs.memoryTypeBits >> kind & 1) || (kinds.memoryTypes[kind].propertyFlags & wanted) != wanted)
        kind++;
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = kind};
    CALL(vkAllocateMemory, device, &allocate, NULL, &memory);
    keep(VK_OBJECT_TYPE_DEVICE_MEMORY, &memory);
    return memory;
}

static inline Buffer make_buffer(uint32_t size) {
    Buffer made = {.size = size};
    VkMemoryRequirements needs;
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size,
        .usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                 VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT};
    CALL(vkCreateBuffer, device, &info, NULL, &made.buffer);
    keep(VK_OBJECT_TYPE_BUFFER, &made.buffer);
    vkGetBufferMemoryRequirements(device, made.buffer, &needs);
    VkDeviceMemory memory = allocate_memory(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    CALL(vkBindBufferMemory, device, made.buffer, memory, 0);
    CALL(vkMapMemory, device, memory, 0, VK_WHOLE_SIZE, 0, &made.data);
    memset(made.data, 0, size);
    return made;
}

/* A buffer whose bytes the check is about: of texels of 16 bytes (f, i, u), or as they are (b). */
static inline Buffer make_output(const char *name, char kind, uint32_t size) {
    if (output_count == OUTPUTS)
        abort();
    outputs[output_count].kind = kind;
    snprintf(outputs[output_count].name, sizeof outputs->name, "%s", name);
    return outputs[output_count++].buffer = make_buffer(size);
}

/* Everything before happens, and can be seen, before everything after. */
static inline void barrier(void) {
    VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &all, 0, NULL, 0, NULL);
}

/* An image whose second level and second layer, where it can have them, have WIDTH × HEIGHT × DEPTH texels; 0 where the driver has none such. */
static inline int make_image(Image *made, VkFormat format, int dimensions, VkImageTiling tiling, VkImageUsageFlags usage, VkImageAspectFlags aspect) {
    VkImageFormatProperties limits;
    VkMemoryRequirements needs;
    if (vkGetPhysicalDeviceImageFormatProperties(physical, format, dimensions - 1, tiling, usage, 0, &limits))
        return 0;
    uint32_t level = limits.maxMipLevels > 1, layer = dimensions < 3 && limits.maxArrayLayers > 1;
    VkExtent3D size = {WIDTH, dimensions > 1 ? HEIGHT : 1, dimensions > 2 ? DEPTH : 1};
    *made = (Image){.format = format, .dimensions = dimensions, .level = level, .layer = layer, .size = size, .aspect = aspect};
    VkExtent3D whole = {size.width << level, dimensions > 1 ? size.height << level : 1, dimensions > 2 ? size.depth << level : 1};
    VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = dimensions - 1, .format = format, .extent = whole,
        .mipLevels = 1 + level, .arrayLayers = 1 + layer, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = tiling, .usage = usage};
    CALL(vkCreateImage, device, &info, NULL, &made->image);
    keep(VK_OBJECT_TYPE_IMAGE, &made->image);
    vkGetImageMemoryRequirements(device, made->image, &needs);
    CALL(vkBindImageMemory, device, made->image, allocate_memory(needs, 0), 0);
    VkImageMemoryBarrier change = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED, .newLayout = GENERAL, .image = made->image, .subresourceRange = {aspect, 0, 1 + level, 0, 1 + layer}};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &change);
    return 1;
}

static inline VkImageView make_view(Image image, const void *next) {
    VkImageView view;
    VkImageViewCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, next, .image = image.image, .viewType = image.dimensions - 1,
        .format = image.format, .subresourceRange = {image.aspect, image.level, 1, image.layer, 1}};
    CALL(vkCreateImageView, device, &info, NULL, &view);
    keep(VK_OBJECT_TYPE_IMAGE_VIEW, &view);
    return view;
}

static inline VkBufferView make_buffer_view(Buffer buffer, VkFormat format) {
    VkBufferView view;
    VkBufferViewCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = buffer.buffer, .format = format, .range = VK_WHOLE_SIZE};
    CALL(vkCreateBufferView, device, &info, NULL, &view);
    keep(VK_OBJECT_TYPE_BUFFER_VIEW, &view);
    return view;
}

/* A shader of the folder; the images it declares with a format get `image_format` (SPIR-V's number) unless that is 0. */
static inline VkShaderModule load_shader(const char *name, uint32_t image_format) {
    char path[512];
    static uint32_t words[1 << 14];
    VkShaderModule module;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(words, 4, 1 << 14, file) : 0;
    if (!count) {
        fprintf(stderr, "%s: no such shader\n", path);
        exit(2);
    }
    fclose(file);
    for (size_t at = 5; at < count; at += words[at] >> 16)
        if ((words[at] & 0xFFFF) == 25 && words[at + 8] && image_format) /* OpTypeImage */
            words[at + 8] = image_format;
    VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = count * 4, .pCode = words};
    CALL(vkCreateShaderModule, device, &info, NULL, &module);
    keep(VK_OBJECT_TYPE_SHADER_MODULE, &module);
    return module;
}

static inline void submit_and_wait(void) {
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    barrier();
    CALL(vkEndCommandBuffer, commands);
    CALL(vkQueueSubmit, queue, 1, &submit, VK_NULL_HANDLE);
    CALL(vkQueueWaitIdle, queue);
}
