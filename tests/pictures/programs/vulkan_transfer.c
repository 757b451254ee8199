/* Fills, updates, copies, clears and blits buffers and images with Vulkan, and compares each result with the processor's own.

       vulkan_transfer [NAME…]       all unless named

   Prints a line for each and ends with the number of those that were wrong. */
#include "vulkan_common.h"
#include <math.h>

enum { WIDTH = 37, HEIGHT = 21 };
#define GENERAL VK_IMAGE_LAYOUT_GENERAL
static const VkImageSubresourceRange WHOLE = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

/* Counts bytes that differ by more than `apart`, and shows the first. */
static int compare(const void *found, const void *expected, int size, int apart) {
    const unsigned char *a = found, *b = expected;
    int wrong = 0;
    for (int i = 0; i < size; i++)
        if (abs(a[i] - b[i]) > apart && !wrong++)
            printf("byte %d is %d, not %d; ", i, a[i], b[i]);
    return wrong;
}

static Buffer make_random(uint32_t size) {
    Buffer made = make_buffer(size);
    for (uint32_t i = 0; i < size; i++)
        ((unsigned char *)made.data)[i] = rand() >> 7;
    return made;
}

static Image make_plain(VkFormat format, uint32_t width, uint32_t height) {
    Image made = make_image(format, width, height, 0, VK_IMAGE_TILING_OPTIMAL);
    to_layout(made, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL);
    return made;
}

static void buffer_to_image(Buffer buffer, Image image) {
    VkBufferImageCopy whole = {.imageSubresource = {image.aspect, 0, 0, 1}, .imageExtent = {image.width, image.height, 1}};
    vkCmdCopyBufferToImage(commands, buffer.buffer, image.image, GENERAL, 1, &whole);
    barrier();
}

static void read_back(Image image, Buffer buffer) {
    barrier();
    image_to_buffer(image, buffer, GENERAL);
    barrier();
    submit_and_wait();
}

static int fill(void) {
    Buffer buffer = make_buffer(4096);
    uint32_t expected[1024] = {0};
    for (int i = 10; i < 510; i++)
        expected[i] = 0xDEADBEEF;
    begin();
    vkCmdFillBuffer(commands, buffer.buffer, 40, 2000, 0xDEADBEEF);
    barrier();
    submit_and_wait();
    return compare(buffer.data, expected, 4096, 0);
}

static int update(void) {
    Buffer buffer = make_buffer(1024);
    uint32_t expected[256] = {0};
    for (int i = 0; i < 100; i++)
        expected[i + 20] = i * i;
    begin();
    vkCmdUpdateBuffer(commands, buffer.buffer, 80, 400, expected + 20);
    barrier();
    submit_and_wait();
    return compare(buffer.data, expected, 1024, 0);
}

static int copy_buffer(void) {
    Buffer from = make_random(70000), to = make_buffer(70000);
    VkBufferCopy parts[3] = {{0, 16, 4096}, {5001, 10003, 777}, {20000, 20480, 40000}};
    unsigned char *expected = calloc(70000, 1);
    begin();
    vkCmdCopyBuffer(commands, from.buffer, to.buffer, 3, parts);
    barrier();
    submit_and_wait();
    for (int i = 0; i < 3; i++)
        memcpy(expected + parts[i].dstOffset, (char *)from.data + parts[i].srcOffset, parts[i].size);
    return compare(to.data, expected, 70000, 0);
}

static int round_trip(VkFormat format, int size) {
    Buffer from = make_random(WIDTH * HEIGHT * size), to = make_buffer(WIDTH * HEIGHT * size);
    begin();
    Image image = make_plain(format, WIDTH, HEIGHT);
    buffer_to_image(from, image);
    read_back(image, to);
    return compare(to.data, from.data, WIDTH * HEIGHT * size, 0);
}

static int images(void) { return round_trip(VK_FORMAT_R8G8B8A8_UNORM, 4); }
static int images_of_bytes(void) { return round_trip(VK_FORMAT_R8_UNORM, 1); }
static int images_of_four_words(void) { return round_trip(VK_FORMAT_R32G32B32A32_UINT, 16); }

static int copy_image(void) {
    Buffer from = make_random(WIDTH * HEIGHT * 4), to = make_random(WIDTH * HEIGHT * 4), found = make_buffer(WIDTH * HEIGHT * 4);
    VkImageCopy part = {{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, {3, 4, 0}, {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, {10, 2, 0}, {20, 9, 1}};
    begin();
    Image first = make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT), second = make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT);
    buffer_to_image(from, first);
    buffer_to_image(to, second);
    vkCmdCopyImage(commands, first.image, GENERAL, second.image, GENERAL, 1, &part);
    read_back(second, found);
    for (int y = 0; y < 9; y++)
        memcpy((uint32_t *)to.data + (y + 2) * WIDTH + 10, (uint32_t *)from.data + (y + 4) * WIDTH + 3, 20 * 4);
    return compare(found.data, to.data, WIDTH * HEIGHT * 4, 0);
}

static int clear(VkFormat format, VkClearColorValue colour, const void *texel, int size) {
    Buffer found = make_buffer(WIDTH * HEIGHT * size);
    int wrong = 0;
    begin();
    Image image = make_plain(format, WIDTH, HEIGHT);
    vkCmdClearColorImage(commands, image.image, GENERAL, &colour, 1, &WHOLE);
    read_back(image, found);
    for (int i = 0; i < WIDTH * HEIGHT && !wrong; i++)
        wrong = compare((char *)found.data + i * size, texel, size, 0);
    return wrong;
}

static int clear_image(void) {
    unsigned char texel[4] = {51, 102, 255, 0};
    return clear(VK_FORMAT_R8G8B8A8_UNORM, (VkClearColorValue){.float32 = {0.2f, 0.4f, 1.5f, -1}}, texel, 4);
}

static int clear_integers(void) {
    uint16_t texel[2] = {1234, 60000};
    return clear(VK_FORMAT_R16G16_UINT, (VkClearColorValue){.uint32 = {1234, 60000, 0, 0}}, texel, 4);
}

static int clear_floats(void) {
    float texel[4] = {-1.5f, 3, 1e20f, 0.1f};
    return clear(VK_FORMAT_R32G32B32A32_SFLOAT, (VkClearColorValue){.float32 = {-1.5f, 3, 1e20f, 0.1f}}, texel, 16);
}

static int clear_depth(void) {
    Buffer found = make_buffer(WIDTH * HEIGHT * 4);
    VkClearDepthStencilValue value = {0.625f, 0};
    VkImageSubresourceRange range = {VK_IMAGE_ASPECT_DEPTH_BIT, 0, 1, 0, 1};
    float expected[WIDTH * HEIGHT];
    for (int i = 0; i < WIDTH * HEIGHT; i++)
        expected[i] = 0.625f;
    Image image = make_image(VK_FORMAT_D32_SFLOAT, WIDTH, HEIGHT, VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT, VK_IMAGE_TILING_OPTIMAL);
    begin();
    to_layout(image, VK_IMAGE_LAYOUT_UNDEFINED, GENERAL);
    vkCmdClearDepthStencilImage(commands, image.image, GENERAL, &value, 1, &range);
    read_back(image, found);
    return compare(found.data, expected, sizeof expected, 0);
}

static Buffer blit(Buffer from, Image *images, VkOffset3D *source, VkOffset3D *target, VkFilter filter, int size) {
    Buffer found = make_buffer(images[1].width * images[1].height * size);
    VkClearColorValue black = {{0}};
    VkImageBlit part = {{VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, {source[0], source[1]}, {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, {target[0], target[1]}};
    buffer_to_image(from, images[0]);
    vkCmdClearColorImage(commands, images[1].image, GENERAL, &black, 1, &WHOLE);
    barrier();
    vkCmdBlitImage(commands, images[0].image, GENERAL, images[1].image, GENERAL, 1, &part, filter);
    read_back(images[1], found);
    return found;
}

/* Twice as large, and mirrored. */
static int blit_larger(void) {
    Buffer from = make_random(WIDTH * HEIGHT * 4);
    uint32_t expected[HEIGHT * 2][WIDTH * 2], *texels = from.data;
    begin();
    Image images[2] = {make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT), make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH * 2, HEIGHT * 2)};
    VkOffset3D source[2] = {{0, 0, 0}, {WIDTH, HEIGHT, 1}}, target[2] = {{WIDTH * 2, 0, 0}, {0, HEIGHT * 2, 1}};
    Buffer found = blit(from, images, source, target, VK_FILTER_NEAREST, 4);
    for (int y = 0; y < HEIGHT * 2; y++)
        for (int x = 0; x < WIDTH * 2; x++)
            expected[y][x] = texels[y / 2 * WIDTH + (WIDTH * 2 - 1 - x) / 2];
    return compare(found.data, expected, sizeof expected, 0);
}

/* Half as large: each texel is the mean of four. */
static int blit_smaller(void) {
    enum { W = WIDTH / 2, H = HEIGHT / 2 };
    Buffer from = make_random(WIDTH * HEIGHT * 4);
    unsigned char expected[H][W][4], *texels = from.data;
    begin();
    Image images[2] = {make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT), make_plain(VK_FORMAT_R8G8B8A8_UNORM, W, H)};
    VkOffset3D source[2] = {{0, 0, 0}, {W * 2, H * 2, 1}}, target[2] = {{0, 0, 0}, {W, H, 1}};
    Buffer found = blit(from, images, source, target, VK_FILTER_LINEAR, 4);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < 4; c++) {
                unsigned char *first = texels + (2 * y * WIDTH + 2 * x) * 4 + c;
                expected[y][x][c] = (first[0] + first[4] + first[WIDTH * 4] + first[WIDTH * 4 + 4] + 2) / 4;
            }
    return compare(found.data, expected, sizeof expected, 1);
}

/* Into a part of an image of another format. */
static int blit_format(void) {
    Buffer from = make_random(WIDTH * HEIGHT * 4);
    unsigned char expected[HEIGHT][WIDTH][4] = {0}, *texels = from.data;
    begin();
    Image images[2] = {make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT), make_plain(VK_FORMAT_B8G8R8A8_UNORM, WIDTH, HEIGHT)};
    VkOffset3D source[2] = {{1, 2, 0}, {21, 12, 1}}, target[2] = {{10, 5, 0}, {30, 15, 1}};
    Buffer found = blit(from, images, source, target, VK_FILTER_NEAREST, 4);
    for (int y = 0; y < 10; y++)
        for (int x = 0; x < 20; x++)
            for (int c = 0; c < 4; c++)
                expected[y + 5][x + 10][c < 3 ? 2 - c : 3] = texels[((y + 2) * WIDTH + x + 1) * 4 + c];
    return compare(found.data, expected, sizeof expected, 0);
}

static int blit_to_floats(void) {
    Buffer from = make_random(WIDTH * HEIGHT * 4);
    unsigned char *texels = from.data;
    begin();
    Image images[2] = {make_plain(VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT), make_plain(VK_FORMAT_R32G32B32A32_SFLOAT, WIDTH, HEIGHT)};
    VkOffset3D all[2] = {{0, 0, 0}, {WIDTH, HEIGHT, 1}};
    Buffer found = blit(from, images, all, all, VK_FILTER_NEAREST, 16);
    float *values = found.data;
    int wrong = 0;
    for (int i = 0; i < WIDTH * HEIGHT * 4; i++)
        if (fabsf(values[i] - texels[i] / 255.0f) > 1e-6f && !wrong++)
            printf("channel %d is %g, not %g; ", i, values[i], texels[i] / 255.0f);
    return wrong;
}

static const struct {
    const char *name;
    int (*run)(void);
} CHECKS[] = {
    {"fill", fill},                 {"update", update},                   {"copy-buffer", copy_buffer},
    {"image-rgba8", images},        {"image-r8", images_of_bytes},        {"image-rgba32", images_of_four_words},
    {"copy-image", copy_image},     {"clear-image", clear_image},         {"clear-integers", clear_integers},
    {"clear-floats", clear_floats}, {"clear-depth", clear_depth},         {"blit-larger", blit_larger},
    {"blit-smaller", blit_smaller}, {"blit-format", blit_format},         {"blit-to-floats", blit_to_floats},
};

int main(int count, char **arguments) {
    int failed = 0, ran = 0;
    open_device();
    for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
        int chosen = count == 1;
        for (int j = 1; j < count; j++)
            chosen |= !strcmp(arguments[j], CHECKS[i].name);
        if (!chosen)
            continue;
        int wrong = CHECKS[i].run();
        printf("%s: %s\n", CHECKS[i].name, wrong ? "wrong" : "right");
        fflush(stdout);
        failed += !!wrong, ran++;
    }
    printf("%d of %d right\n", ran - failed, ran);
    return ran ? failed : 2;
}
