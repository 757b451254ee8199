/* A triangle with OpenGL ES, written as a PPM: a plain program that needs no window and knows nothing of softgen.
 *
 *     cc -O2 -o triangle triangle.c -lEGL -lGLESv2
 *     softgen run --gpu kbl -- ./triangle picture.ppm [WIDTH HEIGHT]
 *
 * Needs the headers and an OpenGL driver (Debian: libegl-dev libgles-dev libgl1-mesa-dri).
 */
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SIDE = 8192 };

static const char *vertex_source =
    "attribute vec2 position; attribute vec3 colour; varying vec3 shade;\n"
    "void main() { gl_Position = vec4(position, 0.0, 1.0); shade = colour; }\n";
static const char *fragment_source =
    "precision mediump float; varying vec3 shade;\n"
    "void main() { gl_FragColor = vec4(shade, 1.0); }\n";
static const float corners[] = { /* x, y, red, green, blue */
    -0.9f, -0.8f, 1, 0, 0,
     0.9f, -0.8f, 0, 1, 0,
     0.0f,  0.9f, 0, 0, 1,
};

static void fine(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "triangle: %s failed\n", what);
        exit(1);
    }
}

static GLuint compiled(GLenum kind, const char *source)
{
    GLuint shader = glCreateShader(kind);
    GLint good;
    glShaderSource(shader, 1, &source, NULL);
    glCompileShader(shader);
    glGetShaderiv(shader, GL_COMPILE_STATUS, &good);
    fine(good, "compiling a shader");
    return shader;
}

/* -- a context without a window, and a texture to draw into ------------------------------------------------------------ */

static void prepare(int width, int height)
{
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    EGLint kind[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE};
    EGLint version[] = {EGL_CONTEXT_CLIENT_VERSION, 2, EGL_NONE};
    EGLConfig config;
    EGLint count = 0;
    fine(eglInitialize(display, NULL, NULL), "opening an EGL display");
    fine(eglChooseConfig(display, kind, &config, 1, &count) && count, "choosing a configuration");
    eglBindAPI(EGL_OPENGL_ES_API);
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
    fine(context && eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context), "making a context");
    GLuint texture, framebuffer;
    glGenTextures(1, &texture);
    glBindTexture(GL_TEXTURE_2D, texture);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, NULL);
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, texture, 0);
    fine(glCheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE, "making a framebuffer");
    printf("%d x %d pixels on %s\n", width, height, glGetString(GL_RENDERER));
}

/* -- the triangle ------------------------------------------------------------------------------------------------------ */

static void draw(int width, int height)
{
    GLuint program = glCreateProgram(), buffer;
    glAttachShader(program, compiled(GL_VERTEX_SHADER, vertex_source));
    glAttachShader(program, compiled(GL_FRAGMENT_SHADER, fragment_source));
    glBindAttribLocation(program, 0, "position");
    glBindAttribLocation(program, 1, "colour");
    glLinkProgram(program);
    glUseProgram(program);
    glGenBuffers(1, &buffer);
    glBindBuffer(GL_ARRAY_BUFFER, buffer);
    glBufferData(GL_ARRAY_BUFFER, sizeof corners, corners, GL_STATIC_DRAW);
    glVertexAttribPointer(0, 2, GL_FLOAT, GL_FALSE, 20, (void *)0);
    glVertexAttribPointer(1, 3, GL_FLOAT, GL_FALSE, 20, (void *)8);
    glEnableVertexAttribArray(0);
    glEnableVertexAttribArray(1);
    glViewport(0, 0, width, height);
    glClearColor(0.1f, 0.12f, 0.16f, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    glDrawArrays(GL_TRIANGLES, 0, 3);
    fine(!glGetError(), "drawing");
}

static int write_ppm(const char *path, int width, int height)
{
    unsigned char *pixels = malloc(4 * (size_t)width * height);
    FILE *file = fopen(path, "wb");
    if (!pixels || !file)
        return -1;
    glReadPixels(0, 0, width, height, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    fprintf(file, "P6 %d %d 255\n", width, height);
    for (int y = height - 1; y >= 0; y--) /* OpenGL's rows begin at the bottom */
        for (int x = 0; x < width; x++)
            fwrite(pixels + 4 * ((size_t)y * width + x), 3, 1, file);
    free(pixels);
    return ferror(file) | fclose(file);
}

int main(int count, char **arguments)
{
    int width = count > 2 ? atoi(arguments[2]) : 640, height = count > 3 ? atoi(arguments[3]) : 480;
    if (count < 2 || width < 1 || height < 1 || width > MOST_SIDE || height > MOST_SIDE) {
        fprintf(stderr, "usage: triangle FILE.ppm [WIDTH HEIGHT]\n");
        return 2;
    }
    prepare(width, height);
    draw(width, height);
    if (write_ppm(arguments[1], width, height)) {
        perror(arguments[1]);
        return 1;
    }
    return 0;
}
