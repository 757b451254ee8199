/* What the Vulkan programs of this folder share: a device, buffers, images, and one command buffer at a time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

static void check(VkResult result, const char *what) {
    if (result) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(1);
    }
}
#define CALL(function, ...) check(function(__VA_ARGS__), #function)

static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandBuffer commands;

typedef struct {
    VkBuffer buffer;
    void *data;
    uint32_t size;
} Buffer;

typedef struct {
    VkImage image;
    VkFormat format;
    uint32_t width, height;
    VkImageAspectFlags aspect;
} Image;

/* Opens a device with features and extensions. */
static inline void open_device_with(const VkPhysicalDeviceFeatures2 *features, uint32_t extensions, const char *const *names) {
    VkInstance instance;
    uint32_t count = 1;
    float priority = 1;
    VkPhysicalDeviceProperties properties;
    VkCommandPool pool;
    VkApplicationInfo program = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_0};
    VkInstanceCreateInfo start = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
    CALL(vkCreateInstance, &start, NULL, &instance);
    VkResult found = vkEnumeratePhysicalDevices(instance, &count, &physical);
    if ((found && found != VK_INCOMPLETE) || !count) {
        fprintf(stderr, "no Vulkan device\n");
        exit(1);
    }
    vkGetPhysicalDeviceProperties(physical, &properties);
    fprintf(stderr, "%s\n", properties.deviceName);
    VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo make = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = features, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues,
        .enabledExtensionCount = extensions, .ppEnabledExtensionNames = names};
    CALL(vkCreateDevice, physical, &make, NULL, &device);
    vkGetDeviceQueue(device, 0, 0, &queue);
    VkCommandPoolCreateInfo pools = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT};
    CALL(vkCreateCommandPool, device, &pools, NULL, &pool);
    VkCommandBufferAllocateInfo allocate = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool, .commandBufferCount = 1};
    CALL(vkAllocateCommandBuffers, device, &allocate, &commands);
}

static inline void open_device(void) { open_device_with(NULL, 0, NULL); }

static inline VkDeviceMemory allocate_memory(VkMemoryRequirements needs, VkMemoryPropertyFlags wanted) {
    VkDeviceMemory memory;
    VkPhysicalDeviceMemoryProperties kinds;
    uint32_t kind = 0;
    vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
    while (!(needs.memoryTypeBits >> kind & 1) || (kinds.memoryTypes[kind].propertyFlags & wanted) != wanted)
        kind++;
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = kind};
    CALL(vkAllocateMemory, device, &allocate, NULL, &memory);
    return memory;
}

/* A buffer for vertices, transfers and `more`. */
static inline Buffer make_buffer_for(uint32_t size, VkBufferUsageFlags more) {
    Buffer made = {.size = size};
    VkMemoryRequirements needs;
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size,
        .usage = more | VK_BUFFER_USAGE_VERTEX_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CALL(vkCreateBuffer, device, &info, NULL, &made.buffer);
    vkGetBufferMemoryRequirements(device, made.buffer, &needs);
    VkDeviceMemory memory = allocate_memory(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
    CALL(vkBindBufferMemory, device, made.buffer, memory, 0);
    CALL(vkMapMemory, device, memory, 0, VK_WHOLE_SIZE, 0, &made.data);
    memset(made.data, 0, size);
    return made;
}

static inline Buffer make_buffer(uint32_t size) { return make_buffer_for(size, 0); }

static inline Image make_image(VkFormat format, uint32_t width, uint32_t height, VkImageUsageFlags usage, VkImageTiling tiling) {
    int depth = usage & VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    Image made = {.format = format, .width = width, .height = height, .aspect = depth ? VK_IMAGE_ASPECT_DEPTH_BIT : VK_IMAGE_ASPECT_COLOR_BIT};
    VkMemoryRequirements needs;
    VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = format, .extent = {width, height, 1},
        .mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = tiling,
        .usage = usage | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    CALL(vkCreateImage, device, &info, NULL, &made.image);
    vkGetImageMemoryRequirements(device, made.image, &needs);
    CALL(vkBindImageMemory, device, made.image, allocate_memory(needs, 0), 0);
    return made;
}

static inline VkImageView make_view(Image image) {
    VkImageView view;
    VkImageViewCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, .image = image.image, .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = image.format, .subresourceRange = {image.aspect, 0, 1, 0, 1}};
    CALL(vkCreateImageView, device, &info, NULL, &view);
    return view;
}

static inline void begin(void) {
    VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CALL(vkBeginCommandBuffer, commands, &info);
}

/* Everything before happens, and can be seen, before everything after. */
static inline void barrier(void) {
    VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT | VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &all, 0, NULL, 0, NULL);
}

static inline void to_layout(Image image, VkImageLayout from, VkImageLayout to) {
    VkImageMemoryBarrier change = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT, .oldLayout = from, .newLayout = to,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .image = image.image,
        .subresourceRange = {image.aspect, 0, 1, 0, 1}};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &change);
}

static inline void submit_and_wait(void) {
    VkFence fence;
    VkFenceCreateInfo fences = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &commands};
    CALL(vkEndCommandBuffer, commands);
    CALL(vkCreateFence, device, &fences, NULL, &fence);
    CALL(vkQueueSubmit, queue, 1, &submit, fence);
    CALL(vkWaitForFences, device, 1, &fence, VK_TRUE, 600000000000ull);
    vkDestroyFence(device, fence, NULL);
}

static inline void image_to_buffer(Image image, Buffer buffer, VkImageLayout layout) {
    VkBufferImageCopy whole = {.imageSubresource = {image.aspect, 0, 0, 1}, .imageExtent = {image.width, image.height, 1}};
    vkCmdCopyImageToBuffer(commands, image.image, layout, buffer.buffer, 1, &whole);
}
