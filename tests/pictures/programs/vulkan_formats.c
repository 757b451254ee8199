/* Uses every feature that a Vulkan driver reports for every format once, and writes what comes of it.

       vulkan_formats SHADERS RESULTS [FORMAT…]       all formats unless named

   RESULTS has a line for each result (format, tiling, dimensions, feature, kind, bytes), followed by its bytes. A check that the device does not
   survive is printed, and the others go on with another device; the program ends with the number of checks that failed. */
#include "vulkan_formats.h"
#include "vulkan_drawing.h"

typedef struct {
    const char *name;
    VkFormat format;
    uint32_t bytes, block_width, block_height;
    char kind;
    uint32_t mask; /* for words of random data: neither infinite nor not a number */
} Row;

static const Row ROWS[] = {
#include "vulkan_formats.inc"
};

/* A format in a tiling, with so many dimensions. */
typedef struct {
    const Row *row;
    VkImageTiling tiling;
    int dimensions;
    VkFormatFeatureFlags features;
    VkImageAspectFlags aspect;
    char kind;
    uint32_t bytes;
} Subject;

static FILE *results;

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 16;
}

/* Random blocks of a format. */
static void fill(Subject s, Buffer buffer) {
    uint32_t state = 1;
    for (uint32_t i = 0; i < buffer.size / 4; i++) {
        uint32_t word = (next_random(&state) << 16 | next_random(&state)) & s.row->mask;
        ((uint32_t *)buffer.data)[i] = s.aspect == VK_IMAGE_ASPECT_DEPTH_BIT && strstr(s.row->name, "D32") ? (word & 0x7FFFFF) | 0x3F000000 : word;
    }
}

/* Texels of 16 bytes: multiples of a third, which no format has to round at the middle between two of its values; small integers. */
static Buffer make_values(char kind, uint32_t scale) {
    Buffer made = make_buffer(VALUES * 16);
    uint32_t state = 2;
    for (int i = 0; i < VALUES * 4; i++) {
        uint32_t value = next_random(&state) % (kind == 'f' ? 4 : 100) / scale;
        if (kind == 'f')
            ((float *)made.data)[i] = value / 3.0f;
        else
            ((uint32_t *)made.data)[i] = kind == 'i' && i % 3 == 0 && value > 3 ? -value : value & (i % 4 == 3 ? 3 : ~0);
    }
    return made;
}

static VkFormat plain(char kind) {
    return kind == 'f' ? VK_FORMAT_R32G32B32A32_SFLOAT : kind == 'i' ? VK_FORMAT_R32G32B32A32_SINT : VK_FORMAT_R32G32B32A32_UINT;
}

static uint32_t texels_of(Image image) { return image.size.width * image.size.height * image.size.depth; }

static VkBufferImageCopy whole(Image image) {
    return (VkBufferImageCopy){.imageSubresource = {image.aspect, image.level, image.layer, 1}, .imageExtent = image.size};
}

static uint32_t bytes_of(Subject s, Image image) {
    uint32_t across = (image.size.width + s.row->block_width - 1) / s.row->block_width;
    return across * ((image.size.height + s.row->block_height - 1) / s.row->block_height) * image.size.depth * s.bytes;
}

static int make_subject(Subject s, Image *image, VkImageUsageFlags usage) {
    return make_image(image, s.row->format, s.dimensions, s.tiling, usage, s.aspect);
}

static Buffer upload(Subject s, Image image) {
    Buffer data = make_buffer((bytes_of(s, image) + 3) & ~3u);
    VkBufferImageCopy part = whole(image);
    fill(s, data);
    vkCmdCopyBufferToImage(commands, data.buffer, image.image, GENERAL, 1, &part);
    barrier();
    return data;
}

static VkSampler make_sampler(VkFilter filter, VkSamplerReductionMode reduction, int compares) {
    VkSampler made;
    VkSamplerReductionModeCreateInfo how = {VK_STRUCTURE_TYPE_SAMPLER_REDUCTION_MODE_CREATE_INFO, NULL, reduction};
    VkSamplerCreateInfo info = {VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO, reduction ? &how : NULL, .magFilter = filter, .minFilter = filter,
        .compareEnable = compares, .compareOp = VK_COMPARE_OP_LESS, .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
        .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE, .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE};
    CALL(vkCreateSampler, device, &info, NULL, &made);
    keep(VK_OBJECT_TYPE_SAMPLER, &made);
    return made;
}

static void sample(Subject s, Image image, const char *name, const char *shader, VkSampler sampler, const float *offset) {
    char file[32];
    VkDescriptorImageInfo info = {sampler, make_view(image, NULL), GENERAL};
    VkWriteDescriptorSet bound = {.dstBinding = 0, .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, .pImageInfo = &info};
    snprintf(file, sizeof file, "%s%d%c.comp", shader, s.dimensions, s.kind);
    dispatch(file, 0, image.size, make_output(name, s.kind, texels_of(image) * 16), &bound, offset, NULL);
}

/* What an image has become: as its texels' values where it can be sampled, else as bytes. */
static void read_image(Subject s, Image image, const char *name) {
    if (s.features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT) {
        sample(s, image, name, "read", make_sampler(VK_FILTER_NEAREST, 0, 0), CENTRE);
    } else {
        Buffer found = make_output(name, 'b', bytes_of(s, image));
        VkBufferImageCopy part = whole(image);
        vkCmdCopyImageToBuffer(commands, image.image, GENERAL, found.buffer, 1, &part);
    }
}

static VkImageUsageFlags readable(Subject s) {
    return VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT | (s.features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT ? VK_IMAGE_USAGE_SAMPLED_BIT : 0);
}

static void transfer(Subject s) {
    Image image, other;
    VkImageUsageFlags usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    if (!make_subject(s, &image, usage) || !make_subject(s, &other, usage))
        return;
    upload(s, image);
    VkImageCopy all = {{s.aspect, image.level, image.layer, 1}, {0}, {s.aspect, other.level, other.layer, 1}, {0}, image.size};
    vkCmdCopyImage(commands, image.image, GENERAL, other.image, GENERAL, 1, &all);
    barrier();
    Buffer found = make_output("transfer", 'b', bytes_of(s, other));
    VkBufferImageCopy part = whole(other);
    vkCmdCopyImageToBuffer(commands, other.image, GENERAL, found.buffer, 1, &part);
}

static void sampled(Subject s) {
    Image image;
    if (!make_subject(s, &image, VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT))
        return;
    upload(s, image);
    sample(s, image, "sampled", "read", make_sampler(VK_FILTER_NEAREST, 0, 0), CENTRE);
    if (s.features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT)
        sample(s, image, "linear", "read", make_sampler(VK_FILTER_LINEAR, 0, 0), BETWEEN);
    if (s.features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_MINMAX_BIT && s.kind == 'f')
        sample(s, image, "minimum", "read", make_sampler(VK_FILTER_LINEAR, VK_SAMPLER_REDUCTION_MODE_MIN, 0), BETWEEN);
    if (s.aspect == VK_IMAGE_ASPECT_DEPTH_BIT && s.dimensions == 2)
        sample(s, image, "compare", "compare", make_sampler(VK_FILTER_NEAREST, 0, 1), CENTRE);
}

/* SPIR-V's number of a format as images declare it, or 0. */
static uint32_t declared(VkFormat format) {
    static const uint16_t NUMBERS[][2] = {{109, 1}, {97, 2}, {100, 3}, {37, 4}, {38, 5}, {103, 6}, {83, 7}, {122, 8}, {76, 9}, {91, 10}, {64, 11},
        {77, 12}, {16, 13}, {70, 14}, {9, 15}, {92, 16}, {78, 17}, {17, 18}, {71, 19}, {10, 20}, {108, 21}, {96, 22}, {42, 23}, {99, 24}, {102, 25},
        {82, 26}, {21, 27}, {75, 28}, {14, 29}, {107, 30}, {95, 31}, {41, 32}, {98, 33}, {68, 34}, {101, 35}, {81, 36}, {20, 37}, {74, 38}, {13, 39}};
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++)
        if (NUMBERS[i][0] == format)
            return NUMBERS[i][1];
    return 0;
}

static void use_storage(Subject s, Image image, const char *shader, Buffer texels) {
    char file[32];
    VkDescriptorImageInfo info = {VK_NULL_HANDLE, make_view(image, NULL), GENERAL};
    VkWriteDescriptorSet bound = {.dstBinding = 2, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, .pImageInfo = &info};
    snprintf(file, sizeof file, "%s%d%c.comp", shader, s.dimensions, s.kind);
    dispatch(file, declared(s.row->format), image.size, texels, &bound, CENTRE, NULL);
}

static void storage(Subject s) {
    Image image;
    if (!make_subject(s, &image, VK_IMAGE_USAGE_STORAGE_BIT | readable(s)))
        return;
    use_storage(s, image, "store", make_values(s.kind, 1));
    read_image(s, image, "store");
    if (declared(s.row->format)) {
        upload(s, image);
        use_storage(s, image, "load", make_output("load", s.kind, texels_of(image) * 16));
    }
    if (s.features & VK_FORMAT_FEATURE_STORAGE_IMAGE_ATOMIC_BIT && s.kind != 'f') {
        use_storage(s, image, "add", make_values(s.kind, 1));
        read_image(s, image, "atomic");
    }
}

static void colour(Subject s) {
    Image image;
    char fragment[16];
    VkClearColorValue value = {.float32 = {1 / 3.0f, 1, 0, 2 / 3.0f}};
    if (s.dimensions == 3 || !make_subject(s, &image, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | readable(s)))
        return;
    VkImageSubresourceRange range = {s.aspect, image.level, 1, image.layer, 1};
    if (s.kind != 'f')
        memcpy(value.uint32, (uint32_t[]){1, 100, 2, 3}, 16);
    vkCmdClearColorImage(commands, image.image, GENERAL, &value, 1, &range);
    barrier();
    read_image(s, image, "clear");
    snprintf(fragment, sizeof fragment, "draw%c.frag", s.kind);
    draw(image, "draw.vert", fragment, make_values(s.kind, 2), (Drawing){0});
    read_image(s, image, "colour");
    if (s.features & VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BLEND_BIT) {
        draw(image, "draw.vert", fragment, make_values(s.kind, 1), (Drawing){.blends = 1});
        read_image(s, image, "blend");
    }
}

static void depth(Subject s) {
    Image image;
    VkClearDepthStencilValue value = {0.5f, 33};
    if (s.dimensions == 3 || !make_subject(s, &image, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT | readable(s)))
        return;
    VkImageSubresourceRange range = {s.aspect, image.level, 1, image.layer, 1};
    vkCmdClearDepthStencilImage(commands, image.image, GENERAL, &value, 1, &range);
    barrier();
    read_image(s, image, "clear");
    draw(image, "draw.vert", NULL, make_buffer(16), (Drawing){.offset = (float[]){0.5f, 0.3f, 0, 0}});
    read_image(s, image, "depth");
}

static void vertex(Subject s) {
    Image target;
    char shader[2][24];
    uint32_t count = WIDTH, stride = (s.bytes + 3) & ~3u;
    char kind = strstr(s.row->name, "64_SFLOAT") ? 'd' : s.kind;
    VkVertexInputAttributeDescription attribute = {0, 0, s.row->format, 0};
    make_image(&target, plain(s.kind), 2, VK_IMAGE_TILING_OPTIMAL, VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT, VK_IMAGE_ASPECT_COLOR_BIT);
    snprintf(shader[0], sizeof *shader, "attribute%c.vert", kind);
    snprintf(shader[1], sizeof *shader, "attribute%c.frag", s.kind);
    Buffer data = make_buffer(stride * count + 64);
    fill(s, data);
    target.size.height = 1;
    draw(target, shader[0], shader[1], data, (Drawing){&attribute, stride});
    VkBufferImageCopy part = whole(target);
    vkCmdCopyImageToBuffer(commands, target.image, GENERAL, make_output("vertex", s.kind, count * 16).buffer, 1, &part);
}

static void texel_buffer(Subject s) {
    char file[24];
    VkExtent3D size = {WIDTH, HEIGHT, 1};
    Buffer data = make_buffer(WIDTH * HEIGHT * s.bytes & ~3u), stored = make_buffer(data.size);
    size.height = data.size / s.bytes / WIDTH;
    fill(s, data);
    VkBufferView view = make_buffer_view(data, s.row->format);
    if (s.features & VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT) {
        VkWriteDescriptorSet bound = {.dstBinding = 3, .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, .pTexelBufferView = &view};
        snprintf(file, sizeof file, "fetch0%c.comp", s.kind);
        dispatch(file, 0, size, make_output("texel buffer", s.kind, size.width * size.height * 16), &bound, CENTRE, NULL);
    }
    if (s.features & VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT) {
        VkBufferView target = make_buffer_view(stored, s.row->format);
        VkWriteDescriptorSet bound = {.dstBinding = 4, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_TEXEL_BUFFER, .pTexelBufferView = &target};
        snprintf(file, sizeof file, "store0%c.comp", s.kind);
        dispatch(file, 0, size, make_values(s.kind, 1), &bound, CENTRE, NULL);
        snprintf(outputs[output_count].name, sizeof outputs->name, "store buffer");
        outputs[output_count].kind = 'b', outputs[output_count++].buffer = stored;
        snprintf(file, sizeof file, "load0%c.comp", s.kind);
        bound.pTexelBufferView = &view;
        if (declared(s.row->format))
            dispatch(file, declared(s.row->format), size, make_output("load buffer", s.kind, size.width * size.height * 16), &bound, CENTRE, NULL);
    }
}

static void blit(Image from, Image to, int mirrored, VkFilter filter) {
    VkImageBlit part = {{from.aspect, from.level, from.layer, 1}, {{0}, {from.size.width, from.size.height, from.size.depth}},
        {to.aspect, to.level, to.layer, 1}, {{mirrored ? to.size.width : 0}, {mirrored ? 0 : to.size.width, to.size.height, to.size.depth}}};
    vkCmdBlitImage(commands, from.image, GENERAL, to.image, GENERAL, 1, &part, filter);
    barrier();
}

static void blit_source(Subject s) {
    Image image, larger;
    VkImageUsageFlags usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    if (s.aspect != VK_IMAGE_ASPECT_COLOR_BIT || !make_subject(s, &image, usage))
        return;
    upload(s, image);
    make_image(&larger, plain(s.kind), s.dimensions, VK_IMAGE_TILING_OPTIMAL, usage, s.aspect);
    if (larger.level) {
        larger.level = 0;
        larger.size = (VkExtent3D){WIDTH * 2, s.dimensions > 1 ? HEIGHT * 2 : 1, s.dimensions > 2 ? DEPTH * 2 : 1};
    }
    VkBufferImageCopy part = whole(larger);
    for (int linear = 0; linear < 2; linear++) {
        if (linear && !(s.features & VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT))
            continue;
        blit(image, larger, 0, linear ? VK_FILTER_LINEAR : VK_FILTER_NEAREST);
        Buffer found = make_output(linear ? "blit linear" : "blit from", s.kind, texels_of(larger) * 16);
        vkCmdCopyImageToBuffer(commands, larger.image, GENERAL, found.buffer, 1, &part);
        barrier();
    }
}

static void blit_target(Subject s) {
    Image image, from;
    VkImageUsageFlags usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    if (!make_subject(s, &image, readable(s)))
        return;
    if (s.aspect != VK_IMAGE_ASPECT_COLOR_BIT) {
        if (!make_subject(s, &from, usage))
            return;
        upload(s, from);
    } else {
        make_image(&from, plain(s.kind), s.dimensions, VK_IMAGE_TILING_OPTIMAL, usage, s.aspect);
        VkBufferImageCopy part = whole(from);
        vkCmdCopyBufferToImage(commands, make_values(s.kind, 1).buffer, from.image, GENERAL, 1, &part);
        barrier();
    }
    blit(from, image, 1, VK_FILTER_NEAREST);
    read_image(s, image, "blit to");
}

static const struct {
    VkFormatFeatureFlags features; /* any of them */
    void (*run)(Subject);
} CHECKS[] = {
    {VK_FORMAT_FEATURE_TRANSFER_SRC_BIT, transfer}, {VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT, sampled}, {VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT, storage},
    {VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT, colour}, {VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT, depth},
    {VK_FORMAT_FEATURE_BLIT_SRC_BIT, blit_source}, {VK_FORMAT_FEATURE_BLIT_DST_BIT, blit_target},
};
enum { IMAGE_CHECKS = sizeof CHECKS / sizeof *CHECKS, BUFFERS = 0 };
static int ran, lost;

static void write_outputs(Subject s, const char *tiling) {
    for (int i = 0; i < output_count; i++) {
        fprintf(results, "%s\t%s\t%d\t%s\t%c\t%d\n", s.row->name, tiling, s.aspect == VK_IMAGE_ASPECT_STENCIL_BIT ? 8 + s.dimensions : s.dimensions,
                outputs[i].name, outputs[i].kind, outputs[i].buffer.size);
        fwrite(outputs[i].buffer.data, 1, outputs[i].buffer.size, results);
    }
    fflush(results);
}

static void run_check(Subject s, const char *tiling, void (*body)(Subject)) {
    VkCommandBufferBeginInfo info = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    output_count = 0;
    ran++;
    int how = setjmp(failed);
    if (how) {
        printf("%s %s %dD: failed at", s.row->name, tiling, s.dimensions);
        for (int i = 0; i < output_count; i++)
            printf("%s %s", i ? "," : "", outputs[i].name);
        printf("\n");
        fflush(stdout);
        lost++;
        object_count = 0;
        if (how == 2)
            open_device();
        else
            vkResetCommandBuffer(commands, 0);
        return;
    }
    CALL(vkBeginCommandBuffer, commands, &info);
    body(s);
    submit_and_wait();
    write_outputs(s, tiling);
    free_objects();
}

static void run_image_checks(const Row *row, VkImageTiling tiling, VkFormatFeatureFlags features) {
    int has_depth = row->name[0] == 'D' || !strncmp(row->name, "X8_D24", 6), has_stencil = !!strstr(row->name, "S8_UINT");
    for (int dimensions = 1; dimensions <= 3; dimensions++)
        for (int i = 0; i < IMAGE_CHECKS; i++) {
            Subject s = {row, tiling, dimensions, features, VK_IMAGE_ASPECT_COLOR_BIT, row->kind, row->bytes};
            if (!(features & CHECKS[i].features))
                continue;
            if (has_depth)
                s.aspect = VK_IMAGE_ASPECT_DEPTH_BIT, s.kind = 'f';
            if (has_depth || !has_stencil)
                run_check(s, tiling ? "linear" : "optimal", CHECKS[i].run);
            if (has_stencil)
                s.aspect = VK_IMAGE_ASPECT_STENCIL_BIT, s.kind = 'u', s.bytes = 1, run_check(s, tiling ? "linear" : "optimal", CHECKS[i].run);
        }
}

static void run_format(const Row *row) {
    VkFormatProperties properties;
    VkFormatFeatureFlags texels = VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT | VK_FORMAT_FEATURE_STORAGE_TEXEL_BUFFER_BIT;
    vkGetPhysicalDeviceFormatProperties(physical, row->format, &properties);
    Subject s = {row, BUFFERS, 0, properties.bufferFeatures, 0, row->kind, row->bytes};
    if (s.features & VK_FORMAT_FEATURE_VERTEX_BUFFER_BIT && (!strstr(row->name, "64") || (s.kind == 'f' && has_doubles)))
        run_check(s, "buffer", vertex);
    if (s.features & texels)
        run_check(s, "buffer", texel_buffer);
    if (strstr(row->name, "_422_"))
        return; /* they need a conversion (vulkan_ycbcr.c) */
    run_image_checks(row, VK_IMAGE_TILING_OPTIMAL, properties.optimalTilingFeatures);
    run_image_checks(row, VK_IMAGE_TILING_LINEAR, properties.linearTilingFeatures);
}

int main(int count, char **arguments) {
    VkApplicationInfo program = {VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo start = {VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
    VkPhysicalDeviceProperties properties;
    uint32_t devices = 1;
    if (count < 3 || !(results = fopen(arguments[2], "wb")) || setjmp(failed))
        return fprintf(stderr, "vulkan_formats SHADERS RESULTS [FORMAT…]\n"), 255;
    folder = arguments[1];
    CALL(vkCreateInstance, &start, NULL, &instance);
    VkResult found = vkEnumeratePhysicalDevices(instance, &devices, &physical);
    if ((found && found != VK_INCOMPLETE) || !devices)
        return fprintf(stderr, "no Vulkan device\n"), 255;
    vkGetPhysicalDeviceProperties(physical, &properties);
    fprintf(stderr, "%s\n", properties.deviceName);
    open_device();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        int chosen = count == 3;
        for (int j = 3; j < count; j++)
            chosen |= !strcmp(arguments[j], ROWS[i].name);
        if (chosen)
            run_format(ROWS + i);
    }
    printf("%d of %d checks done\n", ran - lost, ran);
    return lost > 254 ? 254 : lost;
}
