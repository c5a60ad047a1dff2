#!/bin/sh
# Runs a command where the kernel gives programs for aarch64 to qemu-user:
#
#   scripts/dist/arm64.sh COMMAND [ARG...]
#
# In a user namespace of its own, which has its own table of such programs (binfmt_misc, since Linux
# 6.7): nothing of the machine is changed, and nobody need be root. With EXECD_OVER=FILE and
# EXECD_ARM64=FILE the second lies in the place of the first there, so that tests which were built
# with the path of one binary drive the other.
set -eu
if [ -z "${EXECD_ARM64_INSIDE:-}" ]; then
    EXECD_ARM64_INSIDE=1 exec unshare --user --map-root-user --mount "$0" "$@"
fi
unset EXECD_ARM64_INSIDE
table=/proc/sys/fs/binfmt_misc
mount -t binfmt_misc binfmt_misc "$table"
head='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
# P keeps argv[0], O opens the program, C takes its rights, F opens the emulator here and now.
printf '%s' ":aarch64:M::$head:$mask:$(command -v qemu-aarch64):POCF" > "$table/register"
if [ -n "${EXECD_OVER:-}" ]; then
    mount --bind "$EXECD_ARM64" "$EXECD_OVER"
    unset EXECD_OVER EXECD_ARM64
fi
exec "$@"
