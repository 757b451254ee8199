"""Clips that drivers decode: every frame equals that of ffmpeg's own decoder. The captures need neither driver nor ffmpeg (record.py)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softgen.trace.file import open_trace
from softgen.trace.replay import replay
from tests.codec.frames import digest, video_frames
from tests.codec.record import CLIPS, DATA, VAAPI, captured, clips, ffmpeg, make, shown, software
from tests.conftest import ROOT, SHARED, in_ci, needs_shared

DRIVERS = Path("/usr/lib/x86_64-linux-gnu/dri")


@pytest.mark.parametrize("name", clips())
def test_frames_of_a_capture_are_those_of_ffmpeg(name: str) -> None:
    clip = clips()[name]
    assert len(clip["frames"]) >= clip["count"]
    found = shown(clip, captured(name), clip["frames"])
    assert found == clip["frames"]


def test_columns_of_tiles_on_host_threads_leave_the_same_frames() -> None:
    """Both parts have tiles of their own; the second row of superblocks waits for the first one's filter."""
    clip = clips()["vp9-tiles"]
    assert captured("vp9-tiles", threads=2) == captured("vp9-tiles", threads=3) == clip["frames"]


@pytest.mark.parametrize("name", in_ci(list(clips()), "hevc-tiles", "mpeg2-fields", "vp9-compound"))
def test_captures_hold_what_the_engine_wrote_and_nothing_else(name: str) -> None:
    """iHD writes the next status while a picture is decoded: a recording keeps the program from that until the picture is done."""
    report = replay(open_trace(DATA / name))
    assert report.passed and not report.failed


TRACES = {
    **dict.fromkeys((f"{gpu}-iHD-dec-mjpeg" for gpu in ("bdw", "skl", "kbl", "icl")), "mjpeg"),
    **dict.fromkeys((f"{gpu}-i965-dec-m2" for gpu in ("ivb", "hsw", "bdw", "skl", "kbl")), "m2"),
    **dict.fromkeys((f"{gpu}-iHD-dec-m2" for gpu in ("bdw", "skl", "kbl", "icl")), "m2"),
    **dict.fromkeys((f"{gpu}-i965-dec-h264" for gpu in ("ivb", "hsw", "bdw", "skl", "kbl")), "h264"),
    **dict.fromkeys((f"{gpu}-i965-dec-vp8" for gpu in ("bdw", "skl", "kbl")), "vp8"),
    "kbl-i965-dec-vp9": "vp9",
}
FRAMES = {
    "mjpeg": ["e176691272e1c0e03ca06d38f714d267", "d903391111351cd8dde3d6bdde5debdb"],
    "m2": ["c19c9fe6505a17d37d79197e8e4d9450", "c35cfd9ae18c3eaba36ea8c5a5fcdb5f", "afaa7e97c3c009e6e0878e3917502f79",
           "c35cfd9ae18c3eaba36ea8c5a5fcdb5f", "1c86822fb7565f6c5a7bb817865dbfcb", "7560d376a6399e8f99eee3811bb1c08c"],
    "h264": ["1d82ade1fee12d758e17b0f1ae8fcf67", "b9958d5fbd9f7448da40ec8880998bc3", "ccd80f2dd301f21482e3cf4c299c40d4",
             "17b5cbf96fd66e2c4149891664057c20", "2c86d221650a4b2a16016f21a2a1ee51", "725363b85ae6d37df396dda035102234"],
    "vp8": ["5de96c169f3c0909ae853b81d11941c1", "9f42611735c48c766bf1ae7bd06942a0", "e02dccfde2b6176196cdafaf450f9b64",
            "6cbef5ccce7a4c8eb6efa68d2b0ae72d"],
    # the probabilities of later pictures are those that the driver read back where nothing had been decoded
    "vp9": ["faa714cb3ecd7914602c38e414b0e773", "19908e42b6af2b13ab915771ef686193"],
}  # fmt: skip


@needs_shared("traces")
@pytest.mark.parametrize("name", TRACES)
def test_captures_of_other_gpus_have_the_same_frames(name: str) -> None:
    size = (128, 128 if TRACES[name] == "vp9" else 96)
    expected = FRAMES[TRACES[name]]
    assert video_frames(SHARED / "traces" / name, size, "nv12")[: len(expected)] == expected


LIVE = [  # GPU, driver, coder, file
    ("kbl", "iHD", "-c:v mjpeg -pix_fmt yuvj420p -huffman optimal", "clip.avi"),
    ("kbl", "i965", "-c:v mpeg2video -bf 2 -flags +ildct+ilme", "clip.m2v"),
    ("skl", "iHD", "-c:v mpeg2video -b:v 200k", "clip.m2v"),
    ("kbl", "i965", "-c:v libx264 -x264-params bframes=2:b-adapt=0:cabac=0", "clip.mp4"),
    ("skl", "iHD", "-c:v libvpx -profile:v 3 -slices 2 -b:v 100k", "clip.webm"),
    ("kbl", "iHD", "-c:v libvpx-vp9 -pix_fmt yuv420p -b:v 100k", "clip.webm"),
    ("skl", "iHD", "-pix_fmt yuv420p -c:v libx265 -profile:v main -x265-params bframes=2:ref=3:tskip=1:log-level=none", "clip.mp4"),
    ("icl", "iHD", "-flags +ildct+ilme -c:v libx264 -x264-params tff=1:bframes=2:b-adapt=0:direct=temporal", "clip.mp4"),
]  # fmt: skip


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
@pytest.mark.parametrize(("gpu", "driver", "coder", "file"), in_ci(LIVE, LIVE[1], LIVE[-1]))
def test_a_driver_decodes_what_ffmpeg_has_just_made(gpu: str, driver: str, coder: str, file: str, tmp_path: Path) -> None:
    """Through the whole of it: shim, driver, kernel interface, engine, download."""
    if not (DRIVERS / f"{driver}_drv_video.so").exists():
        pytest.skip(f"the VA-API driver {driver} is not installed")
    decoded = "yuvj420p" if "yuvj" in coder else "yuv420p"
    clip = {"size": [208, 120], "count": 4, "coder": coder, "decoded": decoded, "layout": "nv12"}
    path, raw = tmp_path / file, tmp_path / "frames"
    make(clip, path)
    command = ffmpeg(*VAAPI, "-i", str(path), "-vf", "hwdownload,format=nv12", "-fps_mode", "passthrough", "-f", "rawvideo", str(raw))
    subprocess.run([sys.executable, "-m", "softgen", "run", "--gpu", gpu, "--", *command], check=True, cwd=ROOT,
                   env={**os.environ, "LIBVA_DRIVER_NAME": driver})  # fmt: skip
    frames, size = raw.read_bytes(), 208 * 120 * 3 // 2
    found = [digest(frames[at : at + size]) for at in range(0, len(frames), size)]
    assert found == software(clip, path) and len(found) == 4


def test_the_table_names_captures_that_exist() -> None:
    assert {path.name for path in DATA.iterdir() if path.is_dir()} == set(clips()) and CLIPS.exists()
