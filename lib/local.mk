# SPDX-License-Identifier: MIT
# What runs inside the VM's process.
