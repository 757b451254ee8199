"""One function of OpenCV on the GPU (UMat) and on the CPU: prints the device, and the largest difference in parts of the largest value.

The inputs have no special values, and sizes that are not multiples of anything.
"""

import json
import sys

import cv2
import numpy as np

random = np.random.default_rng(12)
gray = random.random((93, 131), dtype=np.float32)
colour = cv2.GaussianBlur(random.integers(0, 256, (93, 131, 3), dtype=np.uint8), (5, 5), 0)
kernel = random.random((5, 5), dtype=np.float32) - np.float32(0.5)
template = gray[20:37, 30:51].copy()

FUNCTIONS = {
    "matchTemplate": lambda move: cv2.matchTemplate(move(gray), move(template), cv2.TM_CCORR),
    "matchTemplate-normed": lambda move: cv2.matchTemplate(move(gray), move(template), cv2.TM_CCOEFF_NORMED),
    "GaussianBlur": lambda move: cv2.GaussianBlur(move(colour), (7, 7), 1.5),
    "GaussianBlur-float": lambda move: cv2.GaussianBlur(move(gray), (7, 7), 1.5),
    "cvtColor-gray": lambda move: cv2.cvtColor(move(colour), cv2.COLOR_BGR2GRAY),
    "cvtColor-hsv": lambda move: cv2.cvtColor(move(colour), cv2.COLOR_BGR2HSV),
    "resize": lambda move: cv2.resize(move(colour), (201, 47), interpolation=cv2.INTER_LINEAR),
    "resize-area": lambda move: cv2.resize(move(colour), (44, 31), interpolation=cv2.INTER_AREA),
    "dft": lambda move: cv2.dft(move(gray[:90, :128].copy()), flags=cv2.DFT_COMPLEX_OUTPUT),
    "filter2D": lambda move: cv2.filter2D(move(gray), -1, kernel),
}

if __name__ == "__main__":
    cv2.ocl.setUseOpenCL(True)
    function = FUNCTIONS[sys.argv[1]]
    device = cv2.ocl.Device.getDefault().name() if cv2.ocl.haveOpenCL() else ""
    there = function(cv2.UMat).get().astype(np.float64)
    cv2.ocl.setUseOpenCL(False)
    here = function(np.asarray).astype(np.float64)
    print(json.dumps({"device": device, "difference": float(np.abs(there - here).max() / np.abs(here).max())}))
