#!/bin/sh
# Takes out of a Debian root what a sandbox never needs. Runs in the base image while it is built, or by chroot in the
# tree that was bootstrapped, so that both ways give the same base.
set -eu

# No program may give its caller another user's rights. (no-new-privileges holds that too; this is the second lock.)
find / -xdev -type f -perm /6000 -exec chmod a-s {} +

rm -rf /var/cache/apt /var/lib/apt/lists /var/cache/debconf /var/cache/ldconfig /var/log
rm -rf /usr/share/doc /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/bash-completion
rm -rf /usr/lib/systemd /usr/lib/udev /etc/systemd /etc/cron.daily /etc/apt/sources.list.d
rm -rf /tmp/* /var/tmp/* /root/* /home/*

# What belongs to the machine that built it.
: > /etc/resolv.conf
: > /etc/machine-id
echo sandbox > /etc/hostname
