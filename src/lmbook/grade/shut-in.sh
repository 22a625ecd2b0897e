# Make a root of its own, of what a program may read, and a folder that it may write to;
# then run the program in it, without rights. ROOT FOLDER-SIZE LIMITS USER PATH... -- PROGRAM...
set -eu
# Where memory runs out, it goes before the judge; where that may not be said, any process.
{ echo 500 > /proc/self/oom_score_adj; } 2> /dev/null || :
root=$1 size=$2 limits=$3 user=$4
shift 4
mount -t tmpfs -o mode=755,size=1m none "$root"
while [ "$1" != -- ]; do
    if [ -L "$1" ]; then
        mkdir -p "$root$(dirname "$1")"
        ln -s "$(readlink "$1")" "$root$1"
    else
        mkdir -p "$root$1"
        mount --bind "$1" "$root$1"
        mount -o remount,bind,ro,nosuid "$root$1"
    fi
    shift
done
shift
mkdir "$root/proc" "$root/dev" "$root/submission" "$root/.old"
mount -t proc none "$root/proc"
for device in null zero urandom random; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t tmpfs -o "mode=1777,size=$size,nosuid,nodev" none "$root/submission"
ln -s /submission "$root/tmp"
ln -s /submission "$root/dev/shm"
cd "$root"
pivot_root . .old
cd /submission
umount -l /.old
mount -o remount,bind,ro /
exec setpriv $user --no-new-privs --bounding-set=-all --inh-caps=-all --pdeathsig KILL \
    prlimit $limits "$@"
