#!/usr/bin/env bash
# Digest of the files that docs/gpu-report.json vouches for: sha256 over the sha256sum lines of every tracked file under include, src, kernels, in C order.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
git ls-files -z -- include src kernels | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1
