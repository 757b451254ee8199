/* Draws with OpenGL in COUNT distinct states, one after another, and prints the seconds of each draw up to the end of glFinish.

       states COUNT [FILE]

   Each draw is a textured quad over 64 x 64 pixels with other blend equations, factors, colour masks, logic operations, depth and stencil
   tests, formats of targets, depth buffers and textures, and another sampler; a generator of random numbers with a fixed seed chooses them.
   The first line is a draw without any of that: shaders and the driver are ready after it. FILE gets the targets' pixels as bytes.
   cc -O2 states.c -lEGL -lOpenGL */
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LENGTH(list) (sizeof(list) / sizeof *(list))
#define PICK(list) (list)[chance(LENGTH(list))]
enum { SIDE = 64, TEXTURE = 32 };

static const GLenum colours[] = {GL_RGBA8,   GL_SRGB8_ALPHA8,    GL_RGB565,  GL_RGBA4,  GL_RGB5_A1, GL_RGB10_A2, GL_RGBA16F,
                                 GL_RGBA16, GL_R11F_G11F_B10F, GL_RGBA32F, GL_R8, GL_RG8,    GL_RG16F,   GL_R32F,    GL_RGBA8};
static const GLenum depths[] = {GL_DEPTH_COMPONENT16, GL_DEPTH24_STENCIL8, GL_DEPTH_COMPONENT32F, GL_DEPTH32F_STENCIL8};
static const GLenum textures[] = {GL_RGBA8, GL_SRGB8_ALPHA8, GL_RGB565, GL_RGB5_A1, GL_R8,         GL_RG8,  GL_RGBA16F,
                                  GL_RGBA32F, GL_RGB9_E5,   GL_R11F_G11F_B10F, GL_RGB10_A2, GL_RGBA8_SNORM, GL_RGBA16, GL_COMPRESSED_RGBA_S3TC_DXT5_EXT};
static const GLenum equations[] = {GL_FUNC_ADD, GL_FUNC_SUBTRACT, GL_FUNC_REVERSE_SUBTRACT, GL_MIN, GL_MAX};
static const GLenum factors[] = {GL_ZERO,
                                 GL_ONE,
                                 GL_SRC_COLOR,
                                 GL_ONE_MINUS_SRC_COLOR,
                                 GL_DST_COLOR,
                                 GL_ONE_MINUS_DST_COLOR,
                                 GL_SRC_ALPHA,
                                 GL_ONE_MINUS_SRC_ALPHA,
                                 GL_DST_ALPHA,
                                 GL_ONE_MINUS_DST_ALPHA,
                                 GL_CONSTANT_COLOR,
                                 GL_ONE_MINUS_CONSTANT_COLOR,
                                 GL_CONSTANT_ALPHA,
                                 GL_ONE_MINUS_CONSTANT_ALPHA,
                                 GL_SRC_ALPHA_SATURATE};
static const GLenum stencils[] = {GL_KEEP, GL_ZERO, GL_REPLACE, GL_INCR, GL_DECR, GL_INVERT, GL_INCR_WRAP, GL_DECR_WRAP};
static const GLenum wraps[] = {GL_REPEAT, GL_MIRRORED_REPEAT, GL_CLAMP_TO_EDGE, GL_CLAMP_TO_BORDER, GL_MIRROR_CLAMP_TO_EDGE};
static const GLenum smaller[] = {GL_NEAREST, GL_LINEAR, GL_NEAREST_MIPMAP_NEAREST, GL_LINEAR_MIPMAP_NEAREST, GL_NEAREST_MIPMAP_LINEAR, GL_LINEAR_MIPMAP_LINEAR};
static const GLenum larger[] = {GL_NEAREST, GL_LINEAR};

static GLuint framebuffers[LENGTH(colours)][LENGTH(depths)], images[LENGTH(textures)], sampler;
static GLint tint;
static unsigned state = 1;

static unsigned chance(unsigned below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

static void fail(const char *what) {
    fprintf(stderr, "states: %s failed\n", what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* -- set-up -------------------------------------------------------------------------------------------------------- */

static void make_context(void) {
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE}, found = 0;
    EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 5, EGL_NONE};
    EGLConfig config;
    if (!eglInitialize(display, NULL, NULL) || !eglChooseConfig(display, wanted, &config, 1, &found) || !found)
        fail("EGL");
    eglBindAPI(EGL_OPENGL_API);
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
    if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
        fail("making the context");
    fprintf(stderr, "%s\n", glGetString(GL_RENDERER));
}

static GLuint renderbuffer(GLenum format) {
    GLuint made;
    glGenRenderbuffers(1, &made);
    glBindRenderbuffer(GL_RENDERBUFFER, made);
    glRenderbufferStorage(GL_RENDERBUFFER, format, SIDE, SIDE);
    return made;
}

static void make_targets(void) {
    for (unsigned colour = 0; colour < LENGTH(colours); colour++)
        for (unsigned depth = 0; depth < LENGTH(depths); depth++) {
            glGenFramebuffers(1, &framebuffers[colour][depth]);
            glBindFramebuffer(GL_FRAMEBUFFER, framebuffers[colour][depth]);
            glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, renderbuffer(colours[colour]));
            glFramebufferRenderbuffer(GL_FRAMEBUFFER, depth % 2 ? GL_DEPTH_STENCIL_ATTACHMENT : GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER, renderbuffer(depths[depth]));
            if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE)
                fail("a framebuffer");
            glClearColor(0.25f, 0.5f, 0.75f, 0.5f);
            glClearStencil(3);
            glClearDepth(0.5);
            glClear(GL_COLOR_BUFFER_BIT | GL_DEPTH_BUFFER_BIT | GL_STENCIL_BUFFER_BIT);
        }
}

static void make_textures(void) {
    static unsigned char texels[TEXTURE * TEXTURE * 4];
    for (unsigned i = 0; i < sizeof texels; i++)
        texels[i] = chance(256);
    for (unsigned i = 0; i < LENGTH(textures); i++) {
        glGenTextures(1, &images[i]);
        glBindTexture(GL_TEXTURE_2D, images[i]);
        for (int level = 0, size = TEXTURE; size; level++, size /= 2) {
            if (textures[i] == GL_COMPRESSED_RGBA_S3TC_DXT5_EXT)
                glCompressedTexImage2D(GL_TEXTURE_2D, level, textures[i], size, size, 0, 16 * ((size + 3) / 4) * ((size + 3) / 4), texels);
            else
                glTexImage2D(GL_TEXTURE_2D, level, textures[i], size, size, 0, GL_RGBA, GL_UNSIGNED_BYTE, texels + 64 * level);
        }
    }
    glGenSamplers(1, &sampler);
    glBindSampler(0, sampler);
}

static GLuint shader(GLenum kind, const char *text) {
    GLuint made = glCreateShader(kind);
    glShaderSource(made, 1, &text, NULL);
    glCompileShader(made);
    return made;
}

static void make_program(void) {
    GLuint program = glCreateProgram(), array;
    GLint linked;
    glAttachShader(program, shader(GL_VERTEX_SHADER, "#version 330\nout vec2 t; void main() { vec2 p = vec2(gl_VertexID % 2, gl_VertexID / 2); t = p * 1.7 - 0.3;"
                                                     "gl_Position = vec4(p * 2.0 - 1.0, p.x * 0.9 - 0.4, 1.0); }"));
    glAttachShader(program, shader(GL_FRAGMENT_SHADER, "#version 330\nin vec2 t; uniform sampler2D image; uniform vec4 tint; out vec4 colour;"
                                                       "void main() { colour = texture(image, t) * tint; }"));
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &linked);
    if (!linked)
        fail("linking the program");
    glUseProgram(program);
    tint = glGetUniformLocation(program, "tint");
    glGenVertexArrays(1, &array);
    glBindVertexArray(array);
    glViewport(0, 0, SIDE, SIDE);
    glEnable(GL_FRAMEBUFFER_SRGB);
}

/* -- states -------------------------------------------------------------------------------------------------------- */

static void set(GLenum capability, int on) { on ? glEnable(capability) : glDisable(capability); }

static void set_colours(void) {
    float constant[4];
    for (int i = 0; i < 4; i++)
        constant[i] = chance(256) / 255.0f;
    int logic = !chance(4);
    set(GL_COLOR_LOGIC_OP, logic);
    set(GL_BLEND, !logic && chance(8));
    glLogicOp(GL_CLEAR + chance(16));
    glBlendEquationSeparate(PICK(equations), PICK(equations));
    glBlendFuncSeparate(PICK(factors), PICK(factors), PICK(factors), PICK(factors));
    glBlendColor(constant[0], constant[1], constant[2], constant[3]);
    int mask = chance(3) ? 15 : 1 + chance(15);
    glColorMask(mask & 1, mask >> 1 & 1, mask >> 2 & 1, mask >> 3);
    set(GL_DITHER, chance(2));
    glUniform4f(tint, 0.5f + chance(64) / 64.0f, 1, 0.75f, 0.9f);
}

static void set_depth(void) {
    set(GL_DEPTH_TEST, chance(4));
    glDepthFunc(GL_NEVER + chance(8));
    glDepthMask(chance(2));
    set(GL_STENCIL_TEST, chance(3));
    for (int side = 0; side < 2; side++) {
        GLenum face = side ? GL_BACK : GL_FRONT;
        glStencilFuncSeparate(face, GL_NEVER + chance(8), chance(256), chance(256));
        glStencilOpSeparate(face, PICK(stencils), PICK(stencils), PICK(stencils));
        glStencilMaskSeparate(face, chance(256));
    }
}

static void set_sampler(void) {
    glBindTexture(GL_TEXTURE_2D, PICK(images));
    glSamplerParameteri(sampler, GL_TEXTURE_MIN_FILTER, PICK(smaller));
    glSamplerParameteri(sampler, GL_TEXTURE_MAG_FILTER, PICK(larger));
    glSamplerParameteri(sampler, GL_TEXTURE_WRAP_S, PICK(wraps));
    glSamplerParameteri(sampler, GL_TEXTURE_WRAP_T, PICK(wraps));
    glSamplerParameterf(sampler, GL_TEXTURE_MAX_ANISOTROPY_EXT, chance(4) ? 1 : 4);
}

static double draw(void) {
    double began = now();
    glDrawArrays(GL_TRIANGLE_STRIP, 0, 4);
    glFinish();
    return now() - began;
}

static void write_pixels(const char *file) {
    static unsigned char pixels[SIDE * SIDE * 4];
    FILE *out = fopen(file, "wb");
    if (!out)
        fail("opening the file");
    for (unsigned target = 0; target < LENGTH(colours) * LENGTH(depths); target++) {
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffers[target / LENGTH(depths)][target % LENGTH(depths)]);
        glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
        if (fwrite(pixels, sizeof pixels, 1, out) != 1)
            fail("writing the pixels");
    }
    if (fclose(out))
        fail("writing the pixels");
}

int main(int arguments, char **argument) {
    if (arguments < 2)
        return fprintf(stderr, "states COUNT [FILE]\n"), 2;
    make_context();
    make_targets();
    make_textures();
    make_program();
    glFinish();
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffers[0][0]);
    printf("%.6f\n", draw());
    for (int i = 0; i < atoi(argument[1]); i++) {
        GLuint framebuffer = framebuffers[chance(LENGTH(colours))][chance(LENGTH(depths))];
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        set_colours();
        set_depth();
        set_sampler();
        printf("%.6f\n", draw());
        fflush(stdout);
    }
    if (arguments > 2)
        write_pixels(argument[2]);
    return 0;
}
