/* A texture of random blocks in a compressed format, each texel fetched once and written as floats.
 *
 *     gl_compressed FORMAT BYTES FILE     GL's number of the format; FILE gets 64x64 texels, four floats each
 *
 * It prints the renderer's name on standard error, and exits with 2 where the context lacks the format. */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES3/gl32.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 64 };

static GLuint shader(GLenum type, const char *text)
{
    GLuint made = glCreateShader(type);
    GLint fine = 0;
    glShaderSource(made, 1, &text, NULL);
    glCompileShader(made);
    glGetShaderiv(made, GL_COMPILE_STATUS, &fine);
    if (!fine) {
        char log[1000];
        glGetShaderInfoLog(made, sizeof log, NULL, log);
        fprintf(stderr, "%s\n", log);
        exit(1);
    }
    return made;
}

static void start(void)
{
    PFNEGLGETPLATFORMDISPLAYEXTPROC display_of = (PFNEGLGETPLATFORMDISPLAYEXTPROC)eglGetProcAddress("eglGetPlatformDisplayEXT");
    EGLDisplay display = display_of(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
    const EGLint wanted[] = {EGL_SURFACE_TYPE, 0, EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_NONE};
    const EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE};
    EGLConfig config;
    EGLint count;
    eglInitialize(display, NULL, NULL);
    eglBindAPI(EGL_OPENGL_ES_API);
    eglChooseConfig(display, wanted, &config, 1, &count);
    eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, eglCreateContext(display, config, EGL_NO_CONTEXT, version));
    fprintf(stderr, "%s\n", glGetString(GL_RENDERER));
}

static GLuint texture(void)
{
    GLuint made;
    glGenTextures(1, &made);
    glBindTexture(GL_TEXTURE_2D, made);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    return made;
}

int main(int count, char **arguments)
{
    static unsigned char blocks[SIZE * SIZE];
    static float texels[SIZE * SIZE * 4];
    if (count < 4)
        return fprintf(stderr, "usage: gl_compressed FORMAT BYTES FILE\n"), 1;
    GLenum format = (GLenum)strtoul(arguments[1], NULL, 0);
    GLsizei bytes = (GLsizei)strtoul(arguments[2], NULL, 0);
    start();
    unsigned state = 12345;
    for (GLsizei i = 0; i < bytes && i < (GLsizei)sizeof blocks; i++)
        blocks[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
    texture();
    glCompressedTexImage2D(GL_TEXTURE_2D, 0, format, SIZE, SIZE, 0, bytes, blocks);
    if (glGetError() != GL_NO_ERROR)
        return 2;
    GLuint source_texture, target, frame, program = glCreateProgram();
    glGetIntegerv(GL_TEXTURE_BINDING_2D, (GLint *)&source_texture);
    target = texture();
    glTexStorage2D(GL_TEXTURE_2D, 1, GL_RGBA32F, SIZE, SIZE);
    glGenFramebuffers(1, &frame);
    glBindFramebuffer(GL_FRAMEBUFFER, frame);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, target, 0);
    glBindTexture(GL_TEXTURE_2D, source_texture);
    glAttachShader(program, shader(GL_VERTEX_SHADER,
        "#version 300 es\nvoid main() { gl_Position = vec4(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1, 0, 1); }"));
    glAttachShader(program, shader(GL_FRAGMENT_SHADER,
        "#version 300 es\nprecision highp float; uniform highp sampler2D s; out vec4 o;"
        "void main() { o = texelFetch(s, ivec2(gl_FragCoord.xy), 0); }"));
    glLinkProgram(program);
    glUseProgram(program);
    glViewport(0, 0, SIZE, SIZE);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    glReadPixels(0, 0, SIZE, SIZE, GL_RGBA, GL_FLOAT, texels);
    FILE *file = fopen(arguments[3], "wb");
    fwrite(texels, sizeof texels, 1, file);
    return fclose(file);
}
