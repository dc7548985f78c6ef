"""Makes the tar files beside it, with the programs that people make theirs with.

All contents are made here, so the files are as free as this script. They were made with
webdataset 1.0.2 (PyPI), Python 3.11's tarfile, GNU tar 1.34, bsdtar 3.6.2 and zstandard 0.25.0
(PyPI) by

    python3 -m venv venv && venv/bin/pip install webdataset==1.0.2 numpy zstandard==0.25.0
    venv/bin/python make.py

Every file has the same five samples: number i has i.cls, the number, i.txt, "text i", and i.bin, 300·i
bytes of i.
"""
import gzip, io, os, shutil, subprocess, tarfile, tempfile
import webdataset, zstandard

here = os.path.dirname(os.path.abspath(__file__))
LONG = "a/" + "very-" * 40 + "long/folder/"

def samples(prefix=""):
    for i in range(5):
        yield f"{prefix}{i:04d}", {"cls": str(i).encode(), "txt": f"text {i}".encode(), "bin": bytes([i]) * (300 * i)}

def path(name):
    return os.path.join(here, name)

with webdataset.TarWriter(path("webdataset.tar"), mtime=0, user="u", group="g") as w:
    for key, parts in samples():
        w.write({"__key__": key, **parts})

for name, form in ("ustar", tarfile.USTAR_FORMAT), ("gnu", tarfile.GNU_FORMAT), ("pax", tarfile.PAX_FORMAT):
    with tarfile.open(path(f"tarfile-{name}.tar"), "w", format=form) as t:
        for key, parts in samples("" if name == "ustar" else LONG + "ä"):
            for suffix, data in parts.items():
                info = tarfile.TarInfo(f"{key}.{suffix}")
                info.size = len(data)
                t.addfile(info, io.BytesIO(data))

with tempfile.TemporaryDirectory() as folder:
    os.makedirs(os.path.join(folder, LONG))
    names = []
    for key, parts in samples(LONG):
        for suffix, data in parts.items():
            names.append(f"./{key}.{suffix}")
            with open(os.path.join(folder, names[-1]), "wb") as f:
                f.write(data)
    os.symlink("0000.txt", os.path.join(folder, LONG, "link.txt"))
    with open(os.path.join(folder, LONG, "._0000.txt"), "wb") as f:
        f.write(b"what macOS puts beside files")
    names = ["./" + LONG[:-1]] + sorted(names) + [f"./{LONG}link.txt", f"./{LONG}._0000.txt"]
    owner = ["--uid", "0", "--gid", "0", "--uname", "u", "--gname", "g"]
    for form in "gnu", "pax":
        subprocess.check_call(["tar", f"--format={form}", "--owner=u:0", "--group=g:0", "--mtime=@0", "--no-recursion", "-cf", path(f"gnutar-{form}.tar"), *names], cwd=folder)
        subprocess.check_call(["bsdtar", f"--format={form}tar" if form == "gnu" else "--format=pax", *owner, "--no-recursion", "-cf", path(f"bsdtar-{form}.tar"), *names], cwd=folder)
    os.link(os.path.join(folder, LONG, "0000.txt"), os.path.join(folder, "0000.txt"))
    subprocess.check_call(["tar", "--owner=u:0", "--group=g:0", "--mtime=@0", "-cf", path("hardlink.tar"), "./" + LONG + "0000.txt", "./0000.txt"], cwd=folder)
    with open(os.path.join(folder, "0.bin"), "wb") as f:
        f.truncate(1 << 20)
        f.seek(1 << 19)
        f.write(b"x")
    for form in "gnu", "pax":
        subprocess.check_call(["tar", f"--format={form}", "--sparse", "--owner=u:0", "--group=g:0", "--mtime=@0", "-cf", path(f"sparse-{form}.tar"), "0.bin"], cwd=folder)

with open(path("webdataset.tar"), "rb") as f:
    data = f.read()
with open(path("webdataset.tar.gz"), "wb") as f:
    f.write(gzip.compress(data, mtime=0))
with open(path("webdataset.tar.zst"), "wb") as f:
    f.write(zstandard.ZstdCompressor().compress(data))
