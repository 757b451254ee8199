/* Draws a scene with geometry shaders, tessellation or transform feedback with OpenGL 4.0, without a window, and writes it as a PAM file.

       gl_geometry SCENE FILE

   Prints what transform feedback has captured and what queries have counted, as far as the scene has any. Scenes: see `scenes`. */
#define GL_GLEXT_PROTOTYPES
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GL/gl.h>
#include <GL/glext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64, STREAMS = 2, ROOM = 1024, BEGINNING = 16 };

struct scene {
    const char *name, *vertex, *control, *evaluation, *geometry;
    GLenum primitive;
    int count, patch;
    const char *captured[4];
    GLenum mode; /* of transform feedback */
    int room;    /* bytes of the first buffer, or 0 without transform feedback */
};

#define VERSION "#version 400\n"
#define VERTEX /* two triangles that cross the borders, and points for whatever else */ \
    VERSION "out vec4 colour; out float number; void main() { int n = gl_VertexID; number = n;" \
    "gl_Position = vec4(float(n * 7 % 11) / 5. - .993, float(n * 5 % 13) / 6. - 1.11, .1 * (n % 3), 1);" \
    "colour = vec4(n % 2, n % 3 / 2., n % 5 / 4., 1); }"
#define FRAGMENT VERSION "in vec4 tint; out vec4 o; void main() { o = tint; }"
#define FEEDBACK VERSION "out vec4 tint; void main() { gl_Position = vec4(gl_VertexID & 1, gl_VertexID >> 1, 0, 2); tint = vec4(gl_VertexID); }"
#define CONTROL(outputs) \
    VERSION "layout(vertices = " #outputs ") out; in vec4 colour[]; out vec4 tcolour[]; patch out vec4 whole;\n" \
    "void main() { int i = gl_InvocationID; gl_out[gl_InvocationID].gl_Position = gl_in[i % 4].gl_Position;" \
    "tcolour[gl_InvocationID] = colour[i % 4]; barrier();" \
    "whole = tcolour[" #outputs " - 1] / 4. + tcolour[1] / 8.;" \
    "gl_TessLevelOuter[0] = 3.; gl_TessLevelOuter[1] = 4.5; gl_TessLevelOuter[2] = 5.; gl_TessLevelOuter[3] = 6.; gl_TessLevelInner[0] = 7.; gl_TessLevelInner[1] = 3.2; }"
#define EVALUATION(layout_, point) \
    VERSION "layout(" layout_ ") in; in vec4 tcolour[]; patch in vec4 whole; out vec4 tint; out vec4 colour;\n" \
    "void main() { vec3 t = gl_TessCoord; gl_Position = " point "; tint = colour = whole + tcolour[gl_PrimitiveID % 3] * .5 + vec4(t, 0) * .3; }"
#define QUAD "mix(mix(gl_in[0].gl_Position, gl_in[1].gl_Position, t.x), mix(gl_in[3].gl_Position, gl_in[2].gl_Position, t.x), t.y)"
#define TRIANGLE "t.x * gl_in[0].gl_Position + t.y * gl_in[1].gl_Position + t.z * gl_in[2].gl_Position"
#define GEOMETRY(in_, out_, body) VERSION "#extension GL_ARB_viewport_array: enable\n" \
    "layout(" in_ ") in; layout(" out_ ") out; in vec4 colour[]; out vec4 tint; uniform int six; void main() { " body " }"

static const struct scene scenes[] = {
    /* A strip that is cut, as long as a uniform says; PrimitiveID. */
    {"strips", VERTEX, NULL, NULL,
     GEOMETRY("triangles", "triangle_strip, max_vertices = 6",
              "for (int i = 0; i < six; i++) { gl_Position = gl_in[i % 3].gl_Position + vec4(i / 3 * .2, 0, 0, 0);"
              "tint = colour[2] * .5 + .2 * gl_PrimitiveIDIn; EmitVertex(); if (i == 2) EndPrimitive(); }"), GL_TRIANGLES, 12},
    {"fixed", VERTEX, NULL, NULL, /* always three, into another viewport */
     GEOMETRY("triangles", "triangle_strip, max_vertices = 3",
              "for (int i = 0; i < 3; i++) { gl_Position = gl_in[i].gl_Position; tint = colour[i]; gl_ViewportIndex = 1; EmitVertex(); }"),
     GL_TRIANGLES, 12},
    {"nothing", VERTEX, NULL, NULL, GEOMETRY("triangles", "triangle_strip, max_vertices = 3", "tint = vec4(0);"), GL_TRIANGLES, 12},
    {"instanced", VERTEX, NULL, NULL,
     GEOMETRY("triangles, invocations = 11", "triangle_strip, max_vertices = 3",
              "for (int i = 0; i < 3; i++) { gl_Position = gl_in[i].gl_Position * .4 + vec4(gl_InvocationID * .1 - .4, 0, 0, .6);"
              "tint = colour[i] * .1 * gl_InvocationID; EmitVertex(); }"), GL_TRIANGLES, 9},
    {"adjacent", VERTEX, NULL, NULL, /* and more vertices than 32 control bits have */
     GEOMETRY("triangles_adjacency", "line_strip, max_vertices = 40",
              "for (int i = 0; i < 40; i++) { gl_Position = gl_in[i % 6].gl_Position * (1. - i * .02); tint = colour[5 - i % 6];"
              "EmitVertex(); if ((i & 3) == 3) EndPrimitive(); }"), GL_TRIANGLES_ADJACENCY, 12},
    {"adjacent-strip", VERTEX, NULL, NULL,
     GEOMETRY("triangles_adjacency", "line_strip, max_vertices = 6",
              "for (int i = 0; i < 6; i++) { gl_Position = gl_in[i].gl_Position; tint = colour[i]; EmitVertex(); }"),
     GL_TRIANGLE_STRIP_ADJACENCY, 12},
    {"sprites", VERTEX, NULL, NULL,
     GEOMETRY("points", "triangle_strip, max_vertices = 4",
              "for (int i = 0; i < 4; i++) { gl_Position = gl_in[0].gl_Position + .11 * vec4(i % 2, i / 2, 0, 0); tint = colour[0]; EmitVertex(); }"),
     GL_POINTS, 40},
    {"streams", VERTEX, NULL, NULL,
     VERSION "layout(triangles) in; layout(points, max_vertices = 6) out; in vec4 colour[]; in float number[];\n"
     "layout(stream = 0) out vec4 tint; layout(stream = 1) out vec4 other; void main() { for (int i = 0; i < 3; i++) {"
     "gl_Position = gl_in[i].gl_Position + vec4(.01, .01, 0, 0); tint = colour[i]; EmitStreamVertex(0);"
     "other = vec4(number[i], i, gl_PrimitiveIDIn, 7); if (i != 1) EmitStreamVertex(1); } }",
     GL_TRIANGLES, 12, 0, {"tint", "gl_SkipComponents3", "gl_NextBuffer", "other"}, GL_POINTS, ROOM},
    {"quads", VERTEX, CONTROL(11), EVALUATION("quads, fractional_odd_spacing, ccw", QUAD), NULL, GL_PATCHES, 12, 4},
    {"quads-even", VERTEX, CONTROL(4), EVALUATION("quads, fractional_even_spacing, cw", QUAD), NULL, GL_PATCHES, 8, 4},
    {"triangles", VERTEX, CONTROL(3), EVALUATION("triangles, equal_spacing, cw", TRIANGLE), NULL, GL_PATCHES, 12, 4},
    {"isolines", VERTEX, CONTROL(4), EVALUATION("isolines", QUAD), NULL, GL_PATCHES, 8, 4},
    {"points", VERTEX, CONTROL(20), EVALUATION("quads, point_mode", QUAD), NULL, GL_PATCHES, 12, 4},
    {"no-control", VERTEX, NULL,
     VERSION "layout(triangles) in; in vec4 colour[]; out vec4 tint; void main() { vec3 t = gl_TessCoord; gl_Position = " TRIANGLE ";"
     "tint = colour[0] * t.x + colour[1] * t.y + vec4(0, 0, t.z, 1); }", NULL, GL_PATCHES, 9, 3},
    {"tessellated-strips", VERTEX, CONTROL(4), EVALUATION("quads", QUAD),
     GEOMETRY("triangles", "line_strip, max_vertices = 3",
              "for (int i = 0; i < 3; i++) { gl_Position = gl_in[i].gl_Position; tint = colour[i]; EmitVertex(); }"), GL_PATCHES, 8, 4},
    {"feedback", FEEDBACK, NULL, NULL, NULL, GL_TRIANGLES, 6, 0, {"gl_Position", "gl_SkipComponents2", "tint"}, GL_TRIANGLES, ROOM},
    {"feedback-strip", FEEDBACK, NULL, NULL, NULL, GL_TRIANGLE_STRIP, 7, 0, {"tint", "gl_NextBuffer", "gl_Position"}, GL_TRIANGLES, ROOM},
    {"feedback-overflow", FEEDBACK, NULL, NULL, NULL, GL_TRIANGLES, 12, 0, {"tint"}, GL_TRIANGLES, 16 * 8},
    {"feedback-points", VERTEX, CONTROL(4), EVALUATION("quads, point_mode", QUAD), NULL, GL_PATCHES, 8, 4, {"tint"}, GL_POINTS, ROOM},
};
static const struct scene *scene;
static GLuint buffers[STREAMS], feedback, queries[2 * STREAMS];

static void fail(const char *what)
{
    fprintf(stderr, "gl_geometry: %s failed\n", what);
    exit(1);
}

static void open_context(void)
{
    EGLDisplay display = eglGetPlatformDisplay(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, NULL);
    EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT, EGL_SURFACE_TYPE, 0, EGL_NONE}, found = 0;
    EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 0, EGL_CONTEXT_OPENGL_PROFILE_MASK,
                        EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT, EGL_NONE};
    EGLConfig config;
    if (!eglInitialize(display, NULL, NULL) || !eglBindAPI(EGL_OPENGL_API) || !eglChooseConfig(display, wanted, &config, 1, &found) || !found)
        fail("EGL");
    EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
    if (!context || !eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
        fail("an OpenGL 4.0 context");
    fprintf(stderr, "%s\n", glGetString(GL_RENDERER));
}

static void attach(GLuint program, GLenum stage, const char *text)
{
    GLint fine;
    char said[2000];
    GLuint shader = glCreateShader(stage);
    if (!text)
        return;
    glShaderSource(shader, 1, &text, NULL);
    glCompileShader(shader);
    glGetShaderiv(shader, GL_COMPILE_STATUS, &fine);
    glGetShaderInfoLog(shader, sizeof said, NULL, said);
    if (!fine)
        fail(said);
    glAttachShader(program, shader);
}

static void make_program(void)
{
    GLint fine;
    int captured = 0;
    GLuint program = glCreateProgram();
    attach(program, GL_VERTEX_SHADER, scene->vertex);
    attach(program, GL_TESS_CONTROL_SHADER, scene->control);
    attach(program, GL_TESS_EVALUATION_SHADER, scene->evaluation);
    attach(program, GL_GEOMETRY_SHADER, scene->geometry);
    attach(program, GL_FRAGMENT_SHADER, FRAGMENT);
    while (captured < 4 && scene->captured[captured])
        captured++;
    if (captured)
        glTransformFeedbackVaryings(program, captured, (const char *const *)scene->captured, GL_INTERLEAVED_ATTRIBS);
    glLinkProgram(program);
    glGetProgramiv(program, GL_LINK_STATUS, &fine);
    if (!fine)
        fail("linking");
    glUseProgram(program);
    GLint place = glGetUniformLocation(program, "six");
    if (place >= 0)
        glUniform1i(place, 6);
}

static void make_target(void)
{
    GLuint target, framebuffer, arrays;
    GLfloat levels[6] = {5, 2, 3, 4, 6, 2};
    glGenRenderbuffers(1, &target);
    glBindRenderbuffer(GL_RENDERBUFFER, target);
    glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, SIDE, SIDE);
    glGenFramebuffers(1, &framebuffer);
    glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
    glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, target);
    glGenVertexArrays(1, &arrays);
    glBindVertexArray(arrays);
    glViewport(0, 0, SIDE, SIDE);
    if (strcmp(scene->name, "fixed") == 0)
        glViewportIndexedf(1, 20, 10, 40, 50);
    if (scene->patch)
        glPatchParameteri(GL_PATCH_VERTICES, scene->patch);
    glPatchParameterfv(GL_PATCH_DEFAULT_OUTER_LEVEL, levels);
    glPatchParameterfv(GL_PATCH_DEFAULT_INNER_LEVEL, levels + 4);
    glClearColor(.2f, .32f, .4f, 1);
    glClear(GL_COLOR_BUFFER_BIT);
}

static void begin_feedback(void)
{
    void *zeros = calloc(1, 2 * ROOM);
    glGenTransformFeedbacks(1, &feedback);
    glBindTransformFeedback(GL_TRANSFORM_FEEDBACK, feedback);
    glGenBuffers(STREAMS, buffers);
    glGenQueries(2 * STREAMS, queries);
    for (int i = 0; i < STREAMS; i++) {
        glBindBuffer(GL_TRANSFORM_FEEDBACK_BUFFER, buffers[i]);
        glBufferData(GL_TRANSFORM_FEEDBACK_BUFFER, 2 * ROOM, zeros, GL_STATIC_DRAW);
        glBindBufferRange(GL_TRANSFORM_FEEDBACK_BUFFER, i, buffers[i], i ? BEGINNING : 0, i ? ROOM : scene->room);
        glBeginQueryIndexed(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN, i, queries[2 * i]);
        glBeginQueryIndexed(GL_PRIMITIVES_GENERATED, i, queries[2 * i + 1]);
    }
    free(zeros);
    glBeginTransformFeedback(scene->mode);
}

/* What is drawn during the pause is not captured. Behind a paused geometry shader, hardware draws the points of all streams. */
static void draw(void)
{
    glDrawArrays(scene->primitive, 0, scene->count);
    if (!scene->room || scene->geometry)
        return;
    glPauseTransformFeedback();
    glDrawArrays(scene->primitive, 1, scene->count);
    glResumeTransformFeedback();
    glDrawArrays(scene->primitive, 2, scene->count);
}

static void print_feedback(void)
{
    GLuint found[2 * STREAMS];
    float words[2 * ROOM / 4];
    glEndTransformFeedback();
    for (int i = 0; i < STREAMS; i++) {
        glEndQueryIndexed(GL_TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN, i);
        glEndQueryIndexed(GL_PRIMITIVES_GENERATED, i);
        glGetQueryObjectuiv(queries[2 * i], GL_QUERY_RESULT, &found[2 * i]);
        glGetQueryObjectuiv(queries[2 * i + 1], GL_QUERY_RESULT, &found[2 * i + 1]);
        printf("%s stream %d: %u written, %u generated\n", scene->name, i, found[2 * i], found[2 * i + 1]);
        glBindBuffer(GL_TRANSFORM_FEEDBACK_BUFFER, buffers[i]);
        glGetBufferSubData(GL_TRANSFORM_FEEDBACK_BUFFER, 0, sizeof words, words);
        for (unsigned k = 0; k < sizeof words / 4; k++)
            printf("%.4g%c", words[k] + 0., k % 16 == 15 ? '\n' : ' ');
    }
}

/* Draws as many vertices as were captured, which the program has not counted. */
static void draw_captured(void)
{
    GLuint query, found;
    glGenQueries(1, &query);
    glBeginQuery(GL_PRIMITIVES_GENERATED, query);
    glDrawTransformFeedback(GL_POINTS, feedback);
    glEndQuery(GL_PRIMITIVES_GENERATED);
    glGetQueryObjectuiv(query, GL_QUERY_RESULT, &found);
    fprintf(stderr, "%s again: %u\n", scene->name, found);
}

static void write_picture(const char *file)
{
    static unsigned char pixels[SIDE * SIDE * 4];
    FILE *out = fopen(file, "wb");
    glReadPixels(0, 0, SIDE, SIDE, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
    if (!out || fprintf(out, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", SIDE, SIDE) < 0 ||
        fwrite(pixels, 1, sizeof pixels, out) != sizeof pixels || fclose(out))
        fail(file);
}

int main(int count, char **arguments)
{
    for (size_t i = 0; count == 3 && i < sizeof scenes / sizeof *scenes; i++)
        if (!strcmp(scenes[i].name, arguments[1]))
            scene = &scenes[i];
    if (!scene)
        return fprintf(stderr, "usage: gl_geometry SCENE FILE\n"), 2;
    open_context();
    make_target();
    make_program();
    if (scene->room)
        begin_feedback();
    draw();
    write_picture(arguments[2]);
    if (scene->room)
        print_feedback();
    if (scene->room && scene->primitive != GL_PATCHES && !scene->geometry)
        draw_captured();
    if (glGetError())
        fail("OpenGL");
    return 0;
}
