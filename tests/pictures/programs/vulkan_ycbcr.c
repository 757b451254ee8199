/* Samples an image of every YCbCr format that a Vulkan driver reports, through a conversion that leaves values as they are.

       vulkan_ycbcr SHADERS RESULTS

   RESULTS is like that of vulkan_formats.c: of each format and tiling the bytes of the planes, and the texels that the sampler gives. */
#include "vulkan_formats.h"
#include "vulkan_drawing.h"

enum { ACROSS = 12, DOWN = 8 }; /* texels */

typedef struct {
    const char *name;
    VkFormat format;
    uint32_t planes, bytes[3]; /* of a texel of each plane */
    uint32_t wide, high; /* texels of the image that share a value of chroma */
} Row;

static const Row ROWS[] = {
#include "vulkan_ycbcr.inc"
};

static FILE *results;
static int ran, lost;

static Image make_planes(const Row *row, VkImageTiling tiling) {
    Image made = {.format = row->format, .dimensions = 2, .size = {ACROSS, DOWN, 1}, .aspect = VK_IMAGE_ASPECT_COLOR_BIT};
    VkMemoryRequirements needs;
    VkImageCreateInfo info = {VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = row->format, .extent = made.size, .mipLevels = 1,
        .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = tiling, .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    CALL(vkCreateImage, device, &info, NULL, &made.image);
    keep(VK_OBJECT_TYPE_IMAGE, &made.image);
    vkGetImageMemoryRequirements(device, made.image, &needs);
    CALL(vkBindImageMemory, device, made.image, allocate_memory(needs, 0), 0);
    VkImageMemoryBarrier change = {VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
        .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED, .newLayout = GENERAL, .image = made.image, .subresourceRange = {made.aspect, 0, 1, 0, 1}};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 1, &change);
    return made;
}

static void upload(const Row *row, Image image) {
    uint32_t state = 1;
    for (uint32_t plane = 0; plane < row->planes; plane++) {
        char name[16];
        VkExtent3D size = {plane ? ACROSS / row->wide : ACROSS, plane ? DOWN / row->high : DOWN, 1};
        snprintf(name, sizeof name, "plane %u", plane);
        Buffer data = make_output(name, 'b', size.width * size.height * row->bytes[plane]);
        for (uint32_t i = 0; i < data.size; i++)
            ((uint8_t *)data.data)[i] = (state = state * 1664525 + 1013904223) >> 24;
        VkImageAspectFlags aspect = row->planes == 1 ? VK_IMAGE_ASPECT_COLOR_BIT : VK_IMAGE_ASPECT_PLANE_0_BIT << plane;
        VkBufferImageCopy part = {.imageSubresource = {aspect, 0, 0, 1}, .imageExtent = size};
        vkCmdCopyBufferToImage(commands, data.buffer, image.image, GENERAL, 1, &part);
    }
    barrier();
}

static void convert(const Row *row, VkImageTiling tiling, VkFormatFeatureFlags features) {
    VkSampler sampler;
    VkSamplerYcbcrConversionInfo of = {VK_STRUCTURE_TYPE_SAMPLER_YCBCR_CONVERSION_INFO};
    VkChromaLocation where = features & VK_FORMAT_FEATURE_MIDPOINT_CHROMA_SAMPLES_BIT ? VK_CHROMA_LOCATION_MIDPOINT : VK_CHROMA_LOCATION_COSITED_EVEN;
    VkSamplerYcbcrConversionCreateInfo how = {VK_STRUCTURE_TYPE_SAMPLER_YCBCR_CONVERSION_CREATE_INFO, .format = row->format,
        .ycbcrModel = VK_SAMPLER_YCBCR_MODEL_CONVERSION_RGB_IDENTITY, .xChromaOffset = where, .yChromaOffset = where, .chromaFilter = VK_FILTER_NEAREST};
    CALL(vkCreateSamplerYcbcrConversion, device, &how, NULL, &of.conversion);
    keep(VK_OBJECT_TYPE_SAMPLER_YCBCR_CONVERSION, &of.conversion);
    VkSamplerCreateInfo info = {VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO, &of, .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
        .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE, .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE};
    CALL(vkCreateSampler, device, &info, NULL, &sampler);
    keep(VK_OBJECT_TYPE_SAMPLER, &sampler);
    Image image = make_planes(row, tiling);
    upload(row, image);
    VkDescriptorImageInfo view = {sampler, make_view(image, &of), GENERAL};
    VkWriteDescriptorSet bound = {.dstBinding = 0, .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, .pImageInfo = &view};
    dispatch("read2f.comp", 0, image.size, make_output("texels", 'f', ACROSS * DOWN * 16), &bound, CENTRE, &sampler);
}

static void run_check(const Row *row, VkImageTiling tiling, VkFormatFeatureFlags features) {
    VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    int how;
    if (!(features & (VK_FORMAT_FEATURE_MIDPOINT_CHROMA_SAMPLES_BIT | VK_FORMAT_FEATURE_COSITED_CHROMA_SAMPLES_BIT)))
        return;
    output_count = object_count = 0;
    ran++;
    if ((how = setjmp(failed))) {
        printf("%s %s: failed at it\n", row->name, tiling ? "linear" : "optimal");
        lost++;
        open_device();
        return;
    }
    CALL(vkBeginCommandBuffer, commands, &info);
    convert(row, tiling, features);
    submit_and_wait();
    for (int i = 0; i < output_count; i++) {
        fprintf(results, "%s\t%s\t2\t%s\t%c\t%d\n", row->name, tiling ? "linear" : "optimal", outputs[i].name, outputs[i].kind, outputs[i].buffer.size);
        fwrite(outputs[i].buffer.data, 1, outputs[i].buffer.size, results);
    }
    free_objects();
}

int main(int count, char **arguments) {
    VkApplicationInfo program = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo start = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
    uint32_t devices = 1;
    if (count < 3 || !(results = fopen(arguments[2], "wb")) || setjmp(failed))
        return fprintf(stderr, "vulkan_ycbcr SHADERS RESULTS\n"), 255;
    folder = arguments[1];
    CALL(vkCreateInstance, &start, NULL, &instance);
    VkResult found = vkEnumeratePhysicalDevices(instance, &devices, &physical);
    if ((found && found != VK_INCOMPLETE) || !devices)
        return fprintf(stderr, "no Vulkan device\n"), 255;
    open_device();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        VkFormatProperties properties;
        vkGetPhysicalDeviceFormatProperties(physical, ROWS[i].format, &properties);
        run_check(ROWS + i, VK_IMAGE_TILING_OPTIMAL, properties.optimalTilingFeatures);
        run_check(ROWS + i, VK_IMAGE_TILING_LINEAR, properties.linearTilingFeatures);
    }
    fclose(results);
    printf("%d of %d checks done\n", ran - lost, ran);
    return lost > 254 ? 254 : lost;
}
