/* Draws a scene with OpenGL (ES) 2 on an EGL display without a window and writes the picture as a PAM file, bottom row first.

       gl_scene SCENE FILE [width=64] [height=64] [clear=0.2,0.32,0.4,1] [depth=0] [target=renderbuffer|texture|pbuffer] [frames=1]
       [platform=surfaceless|gbm|device]

   Scenes: see SCENES at the end. Scenes marked as desktop use an OpenGL compatibility context, the others OpenGL ES 2.
   gcc gl_scene.c -lEGL -lGLESv2 -lm */
#define EGL_EGLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2.h>
#include <GLES2/gl2ext.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DESKTOP_QUADS 7 /* constants of desktop OpenGL that the ES headers lack */
#define DESKTOP_LINE 0x1B01
#define DESKTOP_RGBA8 0x8058
#define DESKTOP_BASE_LEVEL 0x813C
#define DESKTOP_MAX_LEVEL 0x813D
#define DEPTH24 0x81A6

typedef struct {
    float x, y, z, w;
    float red, green, blue, alpha;
    float u, v;
} Vertex;

typedef struct {
    const char *name;
    int desktop;
    void (*draw)(void);
} Scene;

static int width = 64, height = 64, depth, frames = 1;
static float clear[4] = {0.2f, 0.32f, 0.4f, 1.0f};
static const char *target = "renderbuffer", *platform = "surfaceless";
static const Scene *scene;
static GLuint coloured, textured; /* programs */

static void fail(const char *what) {
    fprintf(stderr, "gl_scene: %s failed (GL error %#x, EGL error %#x)\n", what, glGetError(), eglGetError());
    exit(1);
}

/* -- scenes ------------------------------------------------------------------------------------------------------- */

static void draw(GLenum mode, const Vertex *vertices, int count) {
    static GLuint buffer;
    if (!buffer)
        glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, count * sizeof *vertices, vertices, GL_STREAM_DRAW);
    glVertexAttribPointer(0, 4, GL_FLOAT, GL_FALSE, sizeof *vertices, (void *)0);
    glVertexAttribPointer(1, 4, GL_FLOAT, GL_FALSE, sizeof *vertices, (void *)16);
    glVertexAttribPointer(2, 2, GL_FLOAT, GL_FALSE, sizeof *vertices, (void *)32);
    for (int i = 0; i < 3; i++)
        glEnableVertexAttribArray(i);
    glDrawArrays(mode, 0, count);
}

static const Vertex TRIANGLE[3] = {
    {-0.8f, -0.7f, 0, 1, 1, 0, 0, 1, 0, 0},
    {0.9f, -0.5f, 0, 1, 0, 1, 0, 1, 1, 0},
    {0.1f, 0.85f, 0, 1, 0, 0, 1, 1, 0.5f, 1},
};

static void draw_triangle(void) { draw(GL_TRIANGLES, TRIANGLE, 3); }

/* Two triangles through each other. */
static void draw_crossing(void) {
    static const Vertex both[6] = {
        {-0.9f, -0.8f, -0.7f, 1, 1, 0, 0, 1}, {0.9f, -0.6f, 0.7f, 1, 1, 0, 0, 1}, {-0.2f, 0.9f, 0.1f, 1, 1, 0.5f, 0, 1},
        {-0.7f, 0.8f, 0.6f, 1, 0, 0, 1, 1},   {0.8f, 0.7f, -0.5f, 1, 0, 1, 1, 1}, {0.1f, -0.9f, 0, 1, 0, 0, 1, 1},
    };
    draw(GL_TRIANGLES, both, 6);
}

/* One corner is behind the viewer, so that the near plane cuts the triangle. */
static void draw_near(void) {
    static const Vertex cut[3] = {
        {-0.8f, -0.8f, 0, 1, 1, 0, 0, 1, 0, 0}, {0.9f, -0.7f, 0, 1, 0, 1, 0, 1, 1, 0}, {0.1f, 0.6f, -1.6f, 0.4f, 0, 0, 1, 1, 0.5f, 1},
    };
    draw(GL_TRIANGLES, cut, 3);
}

static void draw_textured(void) {
    unsigned char texels[16][16][4];
    for (int y = 0; y < 16; y++)
        for (int x = 0; x < 16; x++) {
            unsigned char *texel = texels[y][x];
            texel[0] = 16 * x, texel[1] = 16 * y, texel[2] = (x / 4 + y / 4) % 2 * 255, texel[3] = 255;
        }
    GLuint texture;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, 16, 16, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, strstr(scene->name, "nearest") ? GL_NEAREST : GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, strstr(scene->name, "nearest") ? GL_NEAREST : GL_LINEAR);
    glUseProgram(textured);
    draw_triangle();
    glUseProgram(coloured);
    glDeleteTextures(1, &texture);
}

static void draw_blended(void) {
    Vertex see_through[3];
    memcpy(see_through, TRIANGLE, sizeof see_through);
    for (int i = 0; i < 3; i++)
        see_through[i].x = -TRIANGLE[i].x, see_through[i].alpha = 0.5f;
    draw_triangle();
    glEnable(GL_BLEND);
    glBlendFunc(GL_SRC_ALPHA, GL_ONE_MINUS_SRC_ALPHA);
    draw(GL_TRIANGLES, see_through, 3);
    glDisable(GL_BLEND);
}

static const Vertex LOOP[5] = {
    {-0.8f, -0.7f, 0, 1, 1, 0, 0, 1}, {0.7f, -0.8f, 0, 1, 0, 1, 0, 1}, {0.9f, 0.4f, 0, 1, 0, 0, 1, 1},
    {0.0f, 0.9f, 0, 1, 1, 1, 0, 1},   {-0.9f, 0.3f, 0, 1, 0, 1, 1, 1},
};

static void draw_line_loop(void) { draw(GL_LINE_LOOP, LOOP, 5); }
static void draw_fan(void) { draw(GL_TRIANGLE_FAN, LOOP, 5); }
static void draw_points(void) { draw(GL_POINTS, LOOP, 5); }

static void draw_strip(void) {
    Vertex strip[34];
    for (int i = 0; i < 34; i++) {
        float angle = 6.2831853f * (i / 2) / 16, radius = i % 2 ? 0.9f : 0.4f;
        Vertex vertex = {radius * cosf(angle), radius * sinf(angle), 0, 1, i % 2, i / 34.0f, 1 - i / 34.0f, 1};
        strip[i] = vertex;
    }
    draw(GL_TRIANGLE_STRIP, strip, 34);
}

static void draw_indexed(void) {
    static const unsigned short indices[9] = {0, 1, 2, 0, 2, 3, 0, 3, 4};
    GLuint buffer;
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, buffer);
    glBufferData(GL_ELEMENT_ARRAY_BUFFER, sizeof indices, indices, GL_STATIC_DRAW);
    draw(GL_POINTS, LOOP, 5); /* leaves the vertices bound, which the triangles share */
    glDrawElements(GL_TRIANGLES, 9, GL_UNSIGNED_SHORT, (void *)0);
    glBindBuffer(GL_ELEMENT_ARRAY_BUFFER, 0);
    glDeleteBuffers(1, &buffer);
}

static void draw_culled(void) {
    Vertex back[3] = {TRIANGLE[0], TRIANGLE[2], TRIANGLE[1]};
    glEnable(GL_CULL_FACE);
    draw(GL_TRIANGLES, back, 3);
    glScissor(width / 4, height / 4, width / 2, height / 2);
    glEnable(GL_SCISSOR_TEST);
    draw_triangle();
    glDisable(GL_SCISSOR_TEST);
    glDisable(GL_CULL_FACE);
}

/* Colours go with positions, so that it does not matter along which diagonal a quadrilateral is cut. */
static void draw_quads(void) {
    static const float corners[8][2] = {{-0.9f, -0.9f}, {-0.1f, -0.8f}, {-0.1f, 0.8f}, {-0.8f, 0.9f}, {0.1f, -0.8f}, {0.9f, -0.9f}, {0.8f, 0.9f}, {0.1f, 0.8f}};
    Vertex two[8];
    for (int i = 0; i < 8; i++) {
        float x = corners[i][0], y = corners[i][1];
        two[i] = (Vertex){x, y, 0, 1, 0.5f + 0.5f * x, 0.5f + 0.5f * y, i < 4, 1, 0, 0};
    }
    draw(DESKTOP_QUADS, two, 8);
}

static void draw_unfilled(void) {
    void (*polygon_mode)(GLenum, GLenum) = (void (*)(GLenum, GLenum))eglGetProcAddress("glPolygonMode");
    polygon_mode(GL_FRONT_AND_BACK, DESKTOP_LINE);
    draw_triangle();
    polygon_mode(GL_FRONT_AND_BACK, 0x1B02);
}

/* Levels 0 to 2 of a texture are cleared, each by another colour; each is then drawn as a third of the picture. */
static void draw_mip(void) {
    static const float thirds[4] = {-1, -0.33f, 0.37f, 1};
    GLuint texture, framebuffer;
    GLint before;
    glGetIntegerv(GL_FRAMEBUFFER_BINDING, &before);
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    if (!strcmp(scene->name, "mip-by-level")) /* drivers copy levels that come one by one */
        for (int level = 0; level < 3; level++)
            glTexImage2D(GL_TEXTURE_2D, level, DESKTOP_RGBA8, 256 >> level, 128 >> level, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    else
        ((void (*)(GLenum, GLsizei, GLenum, GLsizei, GLsizei))eglGetProcAddress("glTexStorage2D"))(GL_TEXTURE_2D, 3, DESKTOP_RGBA8, 256, 128);
    glTexParameteri(GL_TEXTURE_2D, DESKTOP_MAX_LEVEL, 2);
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    for (int level = 0; level < 3; level++) {
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, level);
        if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
            fail("a framebuffer of a mip level");
        glClearColor(level == 0, level == 1, level == 2, 1);
        glClear(GL_COLOR_BUFFER_BIT);
        glViewport(0, 0, 256 >> level, 128 >> level);
        if (level == 1)
            draw_triangle();
    }
    glBindFramebuffer(GL_FRAMEBUFFER, before);
    glViewport(0, 0, width, height);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST_MIPMAP_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    glUseProgram(textured);
    for (int level = 0; level < 3; level++) {
        float left = thirds[level], right = thirds[level + 1];
        Vertex corners[4] = {
            {left, -1, 0, 1, 1, 1, 1, 1, 0, 0}, {right, -1, 0, 1, 1, 1, 1, 1, 1, 0}, {left, 1, 0, 1, 1, 1, 1, 1, 0, 1}, {right, 1, 0, 1, 1, 1, 1, 1, 1, 1},
        };
        glTexParameteri(GL_TEXTURE_2D, DESKTOP_BASE_LEVEL, level);
        glTexParameteri(GL_TEXTURE_2D, DESKTOP_MAX_LEVEL, level);
        draw(GL_TRIANGLE_STRIP, corners, 4);
    }
    glUseProgram(coloured);
    glDeleteFramebuffers(1, &framebuffer);
    glDeleteTextures(1, &texture);
}

static void draw_nothing(void) {}

static const Scene SCENES[] = {
    {"clear", 0, draw_nothing},      {"triangle", 0, draw_triangle},   {"crossing", 0, draw_crossing},
    {"near", 0, draw_near},          {"textured", 0, draw_textured},   {"textured-nearest", 0, draw_textured},
    {"blended", 0, draw_blended},    {"line-loop", 0, draw_line_loop}, {"fan", 0, draw_fan},
    {"strip", 0, draw_strip},        {"points", 0, draw_points},       {"indexed", 0, draw_indexed},
    {"culled", 0, draw_culled},      {"quads", 1, draw_quads},         {"unfilled", 1, draw_unfilled},
    {"mip", 1, draw_mip},            {"mip-by-level", 1, draw_mip},    {"desktop-triangle", 1, draw_triangle},
};

/* -- set-up ------------------------------------------------------------------------------------------------------- */

static EGLDisplay open_display(void) {
    if (!strcmp(platform, "gbm")) { /* libgbm is loaded here, so that the other platforms do without */
        void *library = dlopen("libgbm.so.1", RTLD_NOW);
        void *(*create)(int) = library ? (void *(*)(int))dlsym(library, "gbm_create_device") : NULL;
        int node = open("/dev/dri/renderD128", O_RDWR);
        if (!create || node < 0)
            fail("opening a GBM device");
        return eglGetPlatformDisplay(EGL_PLATFORM_GBM_KHR, create(node), NULL);
    }
    if (!strcmp(platform, "device")) {
        PFNEGLQUERYDEVICESEXTPROC query = (PFNEGLQUERYDEVICESEXTPROC)eglGetProcAddress("eglQueryDevicesEXT");
        EGLDeviceEXT first;
        EGLint count = 0;
        if (!query || !query(1, &first, &count) || !count)
            fail("finding an EGL device");
        return eglGetPlatformDisplay(EGL_PLATFORM_DEVICE_EXT, first, NULL);
    }
    return eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
}

static void make_context(void) {
    EGLDisplay display = open_display();
    if (!eglInitialize(display, NULL, NULL))
        fail("eglInitialize");
    int pbuffer = !strcmp(target, "pbuffer");
    EGLint wanted[] = {EGL_RENDERABLE_TYPE, scene->desktop ? EGL_OPENGL_BIT : EGL_OPENGL_ES2_BIT, EGL_SURFACE_TYPE, pbuffer ? EGL_PBUFFER_BIT : 0,
                       EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8, EGL_ALPHA_SIZE, 8, EGL_DEPTH_SIZE, depth ? 24 : 0, EGL_NONE};
    EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 2, EGL_NONE}, none[] = {EGL_NONE};
    EGLint size[] = {EGL_WIDTH, width, EGL_HEIGHT, height, EGL_NONE};
    EGLConfig config;
    EGLint count = 0;
    if (!eglChooseConfig(display, wanted, &config, 1, &count) || !count)
        fail("eglChooseConfig");
    eglBindAPI(scene->desktop ? EGL_OPENGL_API : EGL_OPENGL_ES_API);
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, scene->desktop ? none : version);
    EGLSurface surface = pbuffer ? eglCreatePbufferSurface(display, config, size) : EGL_NO_SURFACE;
    if (!context || !eglMakeCurrent(display, surface, surface, context))
        fail("making the context current");
    fprintf(stderr, "%s, %s\n", glGetString(GL_RENDERER), glGetString(GL_VERSION));
}

static void make_target(void) {
    GLuint framebuffer, colour, z;
    if (!strcmp(target, "pbuffer"))
        return;
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    if (!strcmp(target, "texture")) {
        glGenTextures(1, &colour);
        glBindTexture(GL_TEXTURE_2D, colour);
        glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
        glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
        glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, colour, 0);
        glBindTexture(GL_TEXTURE_2D, 0);
    } else {
        glGenRenderbuffers(1, &colour);
        glBindRenderbuffer(GL_RENDERBUFFER, colour);
        glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8_OES, width, height);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colour);
    }
    if (depth) {
        glGenRenderbuffers(1, &z);
        glBindRenderbuffer(GL_RENDERBUFFER, z);
        glRenderbufferStorage(GL_RENDERBUFFER, depth == 16 ? GL_DEPTH_COMPONENT16 : DEPTH24, width, height);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER, z);
    }
    if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
        fail("the framebuffer");
}

static GLuint shader(GLenum kind, const char *body) {
    const char *text[2] = {scene->desktop ? "#version 120\n" : "#version 100\nprecision highp float;\n", body};
    GLuint made = glCreateShader(kind);
    GLint ok;
    glShaderSource(made, 2, text, NULL);
    glCompileShader(made);
    glGetShaderiv(made, GL_COMPILE_STATUS, &ok);
    if (!ok)
        fail("compiling a shader");
    return made;
}

static GLuint program(const char *fragment) {
    GLuint made = glCreateProgram();
    glAttachShader(made, shader(GL_VERTEX_SHADER, "attribute vec4 position, colour; attribute vec2 uv; varying vec4 c; varying vec2 t;"
                                                  "void main() { gl_Position = position; c = colour; t = uv; gl_PointSize = 5.0; }"));
    glAttachShader(made, shader(GL_FRAGMENT_SHADER, fragment));
    glBindAttribLocation(made, 0, "position");
    glBindAttribLocation(made, 1, "colour");
    glBindAttribLocation(made, 2, "uv");
    glLinkProgram(made);
    if (glGetError())
        fail("linking a program");
    return made;
}

static void write_picture(const char *file) {
    unsigned char *pixels = malloc(4 * (size_t)width * height);
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    if (glGetError())
        fail("glReadPixels");
    FILE *out = fopen(file, "wb");
    if (!out)
        fail("opening the file");
    fprintf(out, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", width, height);
    if (fwrite(pixels, 4, (size_t)width * height, out) != (size_t)width * height || fclose(out))
        fail("writing the file");
    free(pixels);
}

static void read_option(const char *text) {
    if (sscanf(text, "width=%d", &width) == 1 || sscanf(text, "height=%d", &height) == 1 || sscanf(text, "depth=%d", &depth) == 1 ||
        sscanf(text, "frames=%d", &frames) == 1 || sscanf(text, "clear=%f,%f,%f,%f", clear, clear + 1, clear + 2, clear + 3) == 4)
        return;
    if (!strncmp(text, "target=", 7))
        target = text + 7;
    else if (!strncmp(text, "platform=", 9))
        platform = text + 9;
    else
        fprintf(stderr, "gl_scene: no option %s\n", text), exit(2);
}

int main(int count, char **arguments) {
    for (size_t i = 0; count > 2 && i < sizeof SCENES / sizeof *SCENES; i++)
        if (!strcmp(SCENES[i].name, arguments[1]))
            scene = SCENES + i;
    if (!scene)
        return fprintf(stderr, "gl_scene SCENE FILE [OPTION…]\n"), 2;
    for (int i = 3; i < count; i++)
        read_option(arguments[i]);
    make_context();
    make_target();
    coloured = program("varying vec4 c; void main() { gl_FragColor = c; }");
    textured = program("varying vec2 t; uniform sampler2D image; void main() { gl_FragColor = texture2D(image, t); }");
    glUseProgram(coloured);
    glViewport(0, 0, width, height);
    for (int frame = 0; frame < frames; frame++) {
        glClearColor(clear[0], clear[1], clear[2], clear[3]);
        if (depth)
            glEnable(GL_DEPTH_TEST);
        glClear(GL_COLOR_BUFFER_BIT | (depth ? GL_DEPTH_BUFFER_BIT : 0));
        scene->draw();
        glFinish();
    }
    write_picture(arguments[2]);
    return 0;
}
