"""Makes the pictures beside it and, for each, NAME.rgb: the pixels that Pillow reads from it.

All pixels are computed here, so the files are as free as this script. They were made with
Pillow 13.0.0 (libjpeg-turbo, libwebp and zlib of its wheel) and Python 3.11 by

    python3 -m venv venv && venv/bin/pip install pillow==13.0.0 && venv/bin/python make.py
"""
import os, struct, zlib
from PIL import Image, ImageOps

here = os.path.dirname(os.path.abspath(__file__))

def path(name):
    p = os.path.join(here, name)
    os.makedirs(os.path.dirname(p), exist_ok=True)
    return p

def keep(name, upright=False):
    m = Image.open(path(name))
    if upright:
        m = ImageOps.exif_transpose(m)
    with open(path(name + ".rgb"), "wb") as f:
        m = m.convert("RGB")
        f.write(struct.pack("<II", *m.size) + m.tobytes())

def smooth(w, h):
    m = Image.new("RGB", (w, h))
    for y in range(h):
        for x in range(w):
            m.putpixel((x, y), (x * 255 // (w - 1), y * 255 // (h - 1), (x * x + y * y) * 255 // (w * w + h * h)))
    return m

# JPEG.
picture = smooth(33, 31)
picture.save(path("444.jpg"), quality=95, subsampling=0)
picture.save(path("420.jpg"), quality=95, subsampling=2)
picture.save(path("progressive.jpg"), quality=90, progressive=True, subsampling=0)
picture.convert("L").save(path("grey.jpg"), quality=95)
picture.convert("CMYK").save(path("cmyk.jpg"), quality=95)
for name in "444.jpg", "420.jpg", "progressive.jpg", "grey.jpg", "cmyk.jpg":
    keep(name)
Image.new("RGB", (16, 16), (200, 100, 50)).save(path("lines.jpg"), quality=95, subsampling=0)
keep("lines.jpg")

# PNG: palettes with transparent colours in every depth, grey and RGB with one, 16 bits.
def png(name, w, h, depth, kind, rows, chunks=()):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path(name), "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, kind, 0, 0, 0)))
        for c in chunks:
            f.write(chunk(*c))
        f.write(chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b""))

palette = (b"PLTE", bytes([250, 10, 20, 30, 240, 50]))
for depth, row in (1, b"\x40"), (2, b"\x10"), (4, b"\x01"), (8, b"\x00\x01"):
    png(f"palette{depth}.png", 2, 1, depth, 3, [row], [palette, (b"tRNS", bytes([0, 128]))])
    keep(f"palette{depth}.png")
png("greykey.png", 2, 1, 8, 0, [bytes([7, 200])], [(b"tRNS", struct.pack(">H", 7))])
png("grey16.png", 2, 1, 16, 0, [struct.pack(">HH", 0x1234, 0xfedc)])
png("rgbkey16.png", 2, 1, 16, 2, [struct.pack(">6H", 0x0102, 0x0304, 0x0506, 0x8000, 0x40ff, 0x20ff)],
    [(b"tRNS", struct.pack(">HHH", 0x0102, 0x0304, 0x0506))])
keep("greykey.png")
alpha = smooth(9, 5).convert("RGBA")
alpha.putalpha(Image.linear_gradient("L").resize((9, 5)))
alpha.save(path("alpha.png"))
keep("alpha.png")
with open(path("named.JPEG"), "wb") as f:  # one of ImageNet's files is such a one
    picture.save(f, "PNG")
keep("named.JPEG")

# GIF.
picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(path("palette.gif"))
keep("palette.gif")

# WebP.
picture.save(path("lossy.webp"), quality=90)
picture.save(path("lossless.webp"), lossless=True)
edges = Image.new("RGB", (32, 32), (0, 0, 0))
edges.paste((255, 255, 255), (16, 0, 32, 32))
edges.save(path("edges.webp"), quality=100)
Image.new("RGB", (32, 32), (128, 128, 128)).save(path("mid.webp"), quality=100)
both = edges.convert("RGBA")
both.putalpha(Image.linear_gradient("L").resize((32, 32)))
both.save(path("alpha.webp"), quality=100)
picture.save(path("animated.webp"), save_all=True, append_images=[edges.resize(picture.size)])
for name in "lossy.webp", "lossless.webp", "edges.webp", "mid.webp", "alpha.webp":
    keep(name)

# Turned: pixels hold their place where they are shown.
shown = Image.new("RGB", (20, 40))
for y in range(40):
    for x in range(20):
        shown.putpixel((x, y), (x, y, 0))
T = Image.Transpose
back = {1: None, 2: T.FLIP_LEFT_RIGHT, 3: T.ROTATE_180, 4: T.FLIP_TOP_BOTTOM, 5: T.TRANSPOSE,
        6: T.ROTATE_90, 7: T.TRANSVERSE, 8: T.ROTATE_270}
for o, op in back.items():
    stored = shown if op is None else shown.transpose(op)
    exif = Image.Exif()
    exif[0x0112] = o
    for name, how in (f"turned/{o}.png", {}), (f"turned/{o}.webp", {"lossless": True, "exact": True}), (f"turned/{o}.jpg", {"quality": 100, "subsampling": 0}):
        stored.save(path(name), exif=exif, **how)
keep("turned/6.png", upright=True)

# A folder of two classes.
for name, colour in ("cat/1.jpg", (200, 40, 40)), ("cat/2.png", (210, 60, 40)), ("dog/1.gif", (40, 40, 200)), ("dog/old/2.webp", (40, 60, 210)):
    kind = {"lossless": True} if name.endswith("webp") else {}
    Image.new("RGB", (12, 10), colour).save(path("pets/" + name), **kind)
with open(path("pets/dog/README.txt"), "w") as f:
    f.write("Made by make.py.\n")
