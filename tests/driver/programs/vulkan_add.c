/* b[i] = 3 * a[i] + i on whatever GPU Vulkan finds; prints the device's name and how many elements are right.
 * With the argument "copies", commands of the GPU fill and copy the input first.
 * Built with -DSPIRV="file with the words of the shader, comma separated". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

enum { COUNT = 64, FILL = 7000 };
static const uint32_t shader[] = {
#include SPIRV
};

static void check(VkResult result, const char *what)
{
    if (result) {
        printf("%s: %d\n", what, result);
        exit(1);
    }
}
#define CALL(function, ...) check(function(__VA_ARGS__), #function)

static VkPhysicalDevice physical;
static VkDevice device;

static VkBuffer make_buffer(uint32_t **mapped)
{
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties kinds;
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = COUNT * 4, 
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CALL(vkCreateBuffer, device, &info, NULL, &buffer);
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
    uint32_t kind = 0;
    while (!(needs.memoryTypeBits >> kind & 1) || (kinds.memoryTypes[kind].propertyFlags & wanted) != wanted)
        kind++;
    VkMemoryAllocateInfo allocate = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = kind};
    CALL(vkAllocateMemory, device, &allocate, NULL, &memory);
    CALL(vkBindBufferMemory, device, buffer, memory, 0);
    CALL(vkMapMemory, device, memory, 0, VK_WHOLE_SIZE, 0, (void **)mapped);
    return buffer;
}

static void open_device(VkQueue *queue)
{
    VkInstance instance;
    uint32_t one = 1;
    float priority = 1;
    VkPhysicalDeviceProperties properties;
    VkApplicationInfo program = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_0};
    VkInstanceCreateInfo start = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
    CALL(vkCreateInstance, &start, NULL, &instance);
    VkResult found = vkEnumeratePhysicalDevices(instance, &one, &physical);
    if ((found && found != VK_INCOMPLETE) || !one) {
        puts("no Vulkan device");
        exit(1);
    }
    vkGetPhysicalDeviceProperties(physical, &properties);
    printf("device: %s\n", properties.deviceName);
    VkDeviceQueueCreateInfo queues = {VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority};
    VkDeviceCreateInfo make = {VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
    CALL(vkCreateDevice, physical, &make, NULL, &device);
    vkGetDeviceQueue(device, 0, 0, queue);
}

/* The first half of the input becomes FILL, then the second half a copy of it: work that drivers draw on a queue for graphics. */
static void fill_and_copy(VkCommandBuffer batch, VkBuffer *buffers)
{
    VkMemoryBarrier all = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_SHADER_READ_BIT};
    const VkPipelineStageFlags to = VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    VkBufferCopy half = {0, COUNT * 2, COUNT * 2};
    vkCmdFillBuffer(batch, buffers[0], 0, COUNT * 2, FILL);
    vkCmdPipelineBarrier(batch, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &all, 0, NULL, 0, NULL);
    vkCmdCopyBuffer(batch, buffers[0], buffers[0], 1, &half);
    vkCmdPipelineBarrier(batch, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &all, 0, NULL, 0, NULL);
}

int main(int argc, char **argv)
{
    const int copies = argc > 1 && !strcmp(argv[1], "copies");
    VkQueue queue;
    uint32_t *a, *b;
    open_device(&queue);
    VkBuffer buffers[2] = {make_buffer(&a), make_buffer(&b)};
    for (uint32_t i = 0; i < COUNT; i++)
        a[i] = 1000 + i, b[i] = 0;

    VkShaderModule module;
    VkShaderModuleCreateInfo code = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = sizeof shader, .pCode = shader};
    CALL(vkCreateShaderModule, device, &code, NULL, &module);
    VkDescriptorSetLayoutBinding bindings[2];
    for (uint32_t i = 0; i < 2; i++)
        bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    VkDescriptorSetLayout set_layout;
    VkDescriptorSetLayoutCreateInfo sets = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 2, .pBindings = bindings};
    CALL(vkCreateDescriptorSetLayout, device, &sets, NULL, &set_layout);
    VkPipelineLayout layout;
    VkPipelineLayoutCreateInfo layouts = {VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &set_layout};
    CALL(vkCreatePipelineLayout, device, &layouts, NULL, &layout);
    VkPipeline pipeline;
    VkComputePipelineCreateInfo pipelines = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .layout = layout,
        .stage = {VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = module, .pName = "main"}};
    CALL(vkCreateComputePipelines, device, VK_NULL_HANDLE, 1, &pipelines, NULL, &pipeline);

    VkDescriptorPool pool;
    VkDescriptorPoolSize sizes = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo pools = {VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &sizes};
    CALL(vkCreateDescriptorPool, device, &pools, NULL, &pool);
    VkDescriptorSet set;
    VkDescriptorSetAllocateInfo take = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorPool = pool, .descriptorSetCount = 1, .pSetLayouts = &set_layout};
    CALL(vkAllocateDescriptorSets, device, &take, &set);
    for (uint32_t i = 0; i < 2; i++) {
        VkDescriptorBufferInfo whole = {buffers[i], 0, VK_WHOLE_SIZE};
        VkWriteDescriptorSet write = {VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set, .dstBinding = i, .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &whole};
        vkUpdateDescriptorSets(device, 1, &write, 0, NULL);
    }

    VkCommandPool commands;
    VkCommandPoolCreateInfo command_pools = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    CALL(vkCreateCommandPool, device, &command_pools, NULL, &commands);
    VkCommandBuffer batch;
    VkCommandBufferAllocateInfo batches = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = commands, .commandBufferCount = 1};
    CALL(vkAllocateCommandBuffers, device, &batches, &batch);
    VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CALL(vkBeginCommandBuffer, batch, &begin);
    if (copies)
        fill_and_copy(batch, buffers);
    vkCmdBindPipeline(batch, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    vkCmdBindDescriptorSets(batch, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &set, 0, NULL);
    vkCmdDispatch(batch, COUNT / 16, 1, 1);
    CALL(vkEndCommandBuffer, batch);
    VkFence fence;
    VkFenceCreateInfo fences = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    CALL(vkCreateFence, device, &fences, NULL, &fence);
    VkSubmitInfo submit = {VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &batch};
    CALL(vkQueueSubmit, queue, 1, &submit, fence);
    CALL(vkWaitForFences, device, 1, &fence, VK_TRUE, 60000000000ull);

    int right = 0;
    for (uint32_t i = 0; i < COUNT; i++)
        right += b[i] == 3 * (copies ? FILL : 1000 + i) + i;
    printf("right: %d of %d\n", right, COUNT);
    return right != COUNT;
}
