/* b[i] = 3 * a[i] + i on whatever GPU Vulkan finds; prints the device's name and how many elements are right.
 * Built with -DSPIRV="file with the words of the shader, comma separated". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vulkan/vulkan.h>

enum { COUNT = 64 };
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
    VkBufferCreateInfo info = {VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = COUNT * 4, .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
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

int main(void)
{
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
        right += b[i] == 3 * (1000 + i) + i;
    printf("right: %d of %d\n", right, COUNT);
    return right != COUNT;
}
