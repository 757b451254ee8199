"""A canvas of Skia on OpenGL: text, gradients, curves and blurs; says how many colours it has and which GPU drew them."""

import moderngl
import numpy as np
import skia

WIDTH, HEIGHT = 320, 240
LEAST = 500  # colours of gradient and blur together

context = moderngl.create_context(standalone=True, backend="egl", require=300)
skia_context = skia.GrDirectContext.MakeGL(skia.GrGLInterface.MakeEGL())
surface = skia.Surface.MakeRenderTarget(skia_context, skia.Budgeted.kNo, skia.ImageInfo.MakeN32Premul(WIDTH, HEIGHT))
with surface as canvas:
    canvas.clear(skia.ColorWHITE)
    colours = skia.GradientShader.MakeLinear([(0, 0), (WIDTH, HEIGHT)], [skia.ColorBLUE, skia.ColorYELLOW])
    canvas.drawCircle(120, 100, 80, skia.Paint(Shader=colours, AntiAlias=True))
    blurred = skia.Paint(Color=skia.ColorRED, MaskFilter=skia.MaskFilter.MakeBlur(skia.kNormal_BlurStyle, 6))
    canvas.drawRoundRect(skia.Rect.MakeXYWH(150, 90, 120, 90), 12, 12, blurred)
    path = skia.Path().moveTo(10, 220).cubicTo(100, 60, 200, 300, 310, 120)
    canvas.drawPath(path, skia.Paint(AntiAlias=True, Style=skia.Paint.kStroke_Style, StrokeWidth=5, Color=skia.ColorGREEN))
    canvas.drawString("softgen", 30, 60, skia.Font(None, 40), skia.Paint(AntiAlias=True))
pixels = surface.makeImageSnapshot().toarray()
found = len(np.unique(pixels.reshape(-1, 4), axis=0))
renderer = context.info["GL_RENDERER"]
print(f"{found} colours, drawn by {renderer.removeprefix('Mesa ')}" if found >= LEAST else f"only {found} colours by {renderer}")
