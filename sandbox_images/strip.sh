#!/bin/sh
# Removes from a Debian root folder what a sandbox never needs. Runs in the base image while it is built, or by chroot
# in a bootstrapped folder, so that both ways give the same base.
set -eu

# Let no program give its caller another user's rights. (no-new-privileges prevents this, too; this is a second
# safeguard.)
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

rm -rf /var/cache/apt /var/lib/apt/lists /var/cache/debconf /var/cache/ldconfig /var/log
rm -rf /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/bash-completion
rm -rf /usr/lib/systemd /usr/lib/udev /etc/systemd /etc/cron.daily /etc/apt/sources.list.d
rm -rf /tmp/* /var/tmp/* /root/* /home/*

# Remove what identifies the machine that built the image.
: > /etc/resolv.conf
: > /etc/machine-id
echo sandbox > /etc/hostname
