"""Every feature that anv and hasvk report for a format can be used, and gives lavapipe's values."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.conftest import in_ci
from tests.driver.running import needs_driver, needs_shim
from tests.pictures import vulkan_ycbcr
from tests.pictures.running import LAVAPIPE
from tests.pictures.vulkan_formats import HEADER, Result, different, expected, formats, found, same, table

GPUS = ("kbl", "bdw", "icl")
SAMPLE = ("B10G11R11_UFLOAT_PACK32", "D16_UNORM", "BC3_SRGB_BLOCK")
LEAST = 3500  # results of all formats; drivers offer more
needs_tools = pytest.mark.skipif(not (HEADER.exists() and shutil.which("glslangValidator") and shutil.which("gcc") and LAVAPIPE.exists()),
                                 reason="not installed: gcc libvulkan-dev glslang-tools mesa-vulkan-drivers")  # fmt: skip


@needs_tools
def test_the_table_has_the_sizes_of_formats() -> None:
    sizes = {row.name: (row.bytes, row.block, row.kind) for row in formats()}
    assert len(sizes) > 180 and len(table().splitlines()) == len(sizes)
    assert sizes["R5G6B5_UNORM_PACK16"] == (2, (1, 1), "f") and sizes["R64G64B64A64_SFLOAT"] == (32, (1, 1), "f")
    assert sizes["A2B10G10R10_UINT_PACK32"] == (4, (1, 1), "u") and sizes["R16G16B16_SINT"] == (6, (1, 1), "i")
    assert sizes["BC1_RGBA_SRGB_BLOCK"] == (8, (4, 4), "f") and sizes["ASTC_10x6_SRGB_BLOCK"] == (16, (10, 6), "f")
    assert sizes["EAC_R11_SNORM_BLOCK"][0] == 8 and sizes["EAC_R11G11_SNORM_BLOCK"][0] == 16
    assert sizes["D16_UNORM_S8_UINT"][0] == 2 and sizes["S8_UINT"] == (1, (1, 1), "u")


def test_values_are_compared_as_nearly_as_formats_have_them() -> None:
    name, one, near, far = ("R8_UNORM", "optimal", "2", "sampled"), b"\0\0\x80?", b"\0\0~?", b"\0\0@?"
    assert same(name, Result("f", one), Result("f", one)) and not same(name, Result("f", one), Result("f", far))
    assert same((*name[:3], "linear"), Result("f", one), Result("f", near)) and not same(name, Result("f", one), Result("f", near))
    assert not same(name, Result("u", one), Result("f", one)) and not same(name, Result("b", one), Result("b", near))
    assert not same(name, Result("f", one), Result("f", one + one)), "one of them has more"
    assert different({name: Result("f", one)}, {name: Result("f", far)}) == ["R8_UNORM optimal 2 sampled"]


@needs_shim
@needs_tools
@pytest.mark.parametrize("gpu", in_ci(GPUS, "bdw"))
def test_features_of_some_formats(gpu: str) -> None:
    needs_driver(gpu, "Vulkan")
    results, failures = found(gpu, *SAMPLE)
    assert not failures and not different(results, expected(*SAMPLE))
    assert {name[3] for name in results} >= {"transfer", "sampled", "linear", "store", "colour", "blend", "blit from", "blit to", "depth"}


@pytest.mark.witness
@needs_shim
@needs_tools
@pytest.mark.parametrize("gpu", GPUS)
def test_features_of_all_formats(gpu: str) -> None:
    needs_driver(gpu, "Vulkan")
    results, failures = found(gpu)
    assert not failures and not different(results, expected()) and len(results) >= LEAST


@needs_tools
def test_texels_of_ycbcr_formats_are_the_components_of_their_planes() -> None:
    rows = vulkan_ycbcr.formats()
    assert rows["G8B8G8R8_422_UNORM"].row() == '{"G8B8G8R8_422_UNORM", 1000156000, 1, {2, 0, 0}, 2, 1},\n'
    packed = vulkan_ycbcr.channels(rows["G8B8G8R8_422_UNORM"], [bytes([255, 51, 0, 102]) * 48])
    assert packed[1, 0, :4].tolist() == [1, 0, 1, 0] and np.allclose(packed[2], 0.2) and np.allclose(packed[0], 0.4)
    planes = [bytes(2 * 96), b"\xc0\xff\x00\x00" * 24]
    planar = vulkan_ycbcr.channels(rows["G10X6_B10X6R10X6_2PLANE_420_UNORM_3PACK16"], planes)
    assert planar[:, 7, 11].tolist() == [0, 0, 1]


@needs_shim
@needs_tools
@pytest.mark.parametrize("gpu", in_ci(GPUS, "kbl"))
def test_ycbcr_formats_are_sampled(gpu: str) -> None:
    needs_driver(gpu, "Vulkan")
    results, failures = vulkan_ycbcr.found(gpu)
    assert not failures and len(results) >= 60 and not vulkan_ycbcr.different(results)
