"""What the kernel tells every process of all others, and no honest program reads: sandboxes do not show it.

One that runs could tell another by such a count what it has seen. What programs do read stays (``meminfo``, ``stat``,
``cpuinfo``, ``loadavg``), and so do calls of the system that tell the same. psutil reads ``vmstat`` and ``diskstats``,
and does without them: it warns, and tells no counts.
"""

from __future__ import annotations

COUNTS = (
    "/proc/buddyinfo",
    "/proc/cgroups",
    "/proc/diskstats",
    "/proc/fs/ext4",
    "/proc/fs/jbd2",
    "/proc/interrupts",
    "/proc/key-users",
    "/proc/locks",
    "/proc/pagetypeinfo",
    "/proc/pressure",
    "/proc/schedstat",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-negative",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/pty/nr",
    "/proc/vmstat",
    "/proc/zoneinfo",
)

OF_ENGINES = (
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    "/sys/devices/system/node/node0/numastat",
    "/sys/devices/system/node/node0/vmstat",
    "/sys/fs/ext4",
)
"""What an engine hides where nobody says what to hide, and counts in a folder that bubblewrap does not show."""
