#!/bin/sh
# Tries what `cargo xtask package` made, each thing from its file and not from the tree: the packages of
# npm and pip, the archive, and, as root, the package for Debian in a system of its own and the image built
# on it.
#
#     packaging/try.sh [--quick] [DIRECTORY]        target/package unless another is named
#
# With --quick the package for Debian goes into an empty directory instead, without what it depends on, and
# there is no image: that needs no root.
#
# Needs npm, python3, and for the rest root with debootstrap, systemd-analyze and buildah. What is not
# here is said and left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
quick=
[ "${1:-}" != --quick ] || { quick=yes; shift; }
packages=$(cd "${1:-$here/../target/package}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '%s\n' "$*"; }
has() { command -v "$1" > /dev/null 2>&1; }
# A demo that says that it is ready, and ends when it is told to.
demo() {
    mkdir -p -m 700 "$work/home"
    HOME=$work/home XDG_RUNTIME_DIR=$work/home timeout -s TERM 15 "$@" demo --ephemeral \
        --listen 127.0.0.1:0 2> "$work/errors" | grep -q '^Ready\.' \
        || { cat "$work/errors"; say "not ready: $*"; exit 1; }
    say "ready: $*"
}

if has npm; then
    mkdir "$work/npm" && cd "$work/npm" && echo '{"private":true}' > package.json
    npm install --silent --no-audit --no-fund "$packages"/aaep-cli-*.tgz "$packages"/aaep-[0-9]*.tgz
    demo npx --no-install aaep
    for library in agent subscriber; do
        [ -e "$packages"/aaep-$library-*.tgz ] || { say "skipped: @aaep/$library is not there"; continue; }
        npm install --silent --no-audit --no-fund "$packages"/aaep-$library-*.tgz
        node --input-type=module --eval "await import('@aaep/$library')"
        say "imported: @aaep/$library"
    done
else
    say "skipped: there is no npm"
fi

if has python3; then
    python3 -m venv "$work/tools" && "$work/tools/bin/pip" install --quiet uv twine
    "$work/tools/bin/twine" check --strict "$packages"/*.whl
    if [ -e "$packages"/aaep-[0-9]*.whl ]; then
        "$work/tools/bin/pip" install --quiet --no-index "$packages"/aaep-[0-9]*.whl
        "$work/tools/bin/python" -c 'import aaep; aaep.Agent'
        say "imported: aaep"
    else
        say "skipped: the Python package aaep is not there"
    fi
    UV_CACHE_DIR=$work/uv demo "$work/tools/bin/uvx" --offline --from "$packages"/aaep_cli-*.whl aaep
else
    say "skipped: there is no python3"
fi

# Where `cargo binstall` looks for the command.
mkdir "$work/archive"
tar -xzf "$packages"/aaep-*.tar.gz -C "$work/archive" --strip-components=1
demo "$work/archive/aaep"

seen() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./tmp -o -path ./var/lib/dpkg \) -prune -o -print | sort); }
# What the smallest system lacks is not the unit's fault.
verify() {
    has systemd-analyze || { say "skipped: there is no systemd-analyze"; return 0; }
    # Units of users cannot be judged in another root, so theirs stands beside that of the system.
    units=/usr/lib/systemd
    cp "$root$units/user/aaep-hub.service" "$root$units/system/aaep-hub-of-a-user.service"
    for unit in aaep-hub aaep-hub-of-a-user; do
        systemd-analyze verify --system --root="$root" --man=no "$units/system/$unit.service" > "$work/verified" 2>&1 || true
        found=$(grep -e "$unit.service" -e '^Failed to' "$work/verified" | grep -v 'sysinit.target not found' || true)
        [ -z "$found" ] || { say "$found"; exit 1; }
    done
    rm "$root$units/system/aaep-hub-of-a-user.service"
    say "systemd-analyze finds nothing in the units"
}

if [ -n "$quick" ]; then
    has dpkg || { say "skipped: there is no dpkg"; exit 0; }
    root=$work/root
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/bin" "$root/var/log" "$root/usr/lib" "$root/usr/bin" "$root/usr/share"
    : > "$root/var/lib/dpkg/status"
    cp /bin/sh "$root/bin/sh"
    seen > "$work/before"
    into() { dpkg --root="$root" --log="$work/dpkg.log" --force-not-root --force-script-chrootless --force-depends "$@" 2>&1; }
    into --install "$packages"/aaep_*.deb > "$work/dpkg" || { cat "$work/dpkg"; exit 1; }
    demo "$root/usr/bin/aaep"
    verify
    into --purge aaep > "$work/dpkg" || { cat "$work/dpkg"; exit 1; }
    seen > "$work/after"
    left=$(comm -13 "$work/before" "$work/after")
    [ -z "$left" ] || { say "left behind: $left"; exit 1; }
    say "the package for Debian was installed into a directory, and removed without a trace"
    exit 0
fi

if [ "$(id -u)" != 0 ] || ! has debootstrap; then
    say "skipped: the package for Debian is installed by root, with debootstrap"
    exit 0
fi
root=$work/root
debootstrap --variant=minbase bookworm "$root" > "$work/debootstrap.log"
seen > "$work/before"
cp "$packages"/aaep_*.deb "$root/tmp/aaep.deb"
chroot "$root" dpkg -i /tmp/aaep.deb
chroot "$root" aaep --version
# As docs/install.md has it.
chroot "$root" install -D -m 644 /usr/share/doc/aaep/examples/aaep.example.toml /etc/aaep/aaep.toml
verify
# It works there, and leaves its data.
chroot "$root" sh -eu -c '
    mkdir -m 700 /var/lib/aaep /var/lib/aaep/data /var/lib/aaep/state /run/aaep
    export HOME=/proc/none XDG_RUNTIME_DIR=/run/aaep AAEP_STATE=/var/lib/aaep/state
    aaep hub --data /var/lib/aaep/data --listen 127.0.0.1:0 > /tmp/said &
    until grep -q "^Ready" /tmp/said; do sleep 0.2; done
    aaep status
    kill $!
    wait $!'
rm -rf "$root/run/aaep"
chroot "$root" dpkg --purge aaep
seen > "$work/after"
left=$(comm -13 "$work/before" "$work/after" | grep -v -e '^\./var/lib/aaep' -e '^\./etc/aaep' || true)
[ -z "$left" ] || { say "left behind: $left"; exit 1; }
[ -e "$root/var/lib/aaep/data/journal.db" ] || { say "the data is gone"; exit 1; }
say "removed without a trace but the data"

if ! has buildah; then
    say "skipped: there is no buildah"
    exit 0
fi
export BUILDAH_ISOLATION=chroot
image() { buildah --storage-driver vfs --root "$work/images" --runroot "$work/images-run" "$@"; }
rm -rf "$root/var/lib/aaep" "$root/tmp/aaep.deb"
base=$(image from scratch)
image add --quiet "$base" "$root" / > /dev/null
image commit --quiet "$base" localhost/base > /dev/null
image build --quiet --format docker --build-arg BASE=localhost/base -f "$here/oci/Containerfile" \
    -t aaep "$packages" > /dev/null
"$work/archive/aaep" hub init --dir "$work/config" --host localhost > /dev/null
chown -R 8707:8707 "$work/config"
container=$(image from --quiet localhost/aaep)
image run --volume "$work/config:/etc/aaep:ro" "$container" -- \
    aaep hub --config /etc/aaep/aaep.toml --listen 127.0.0.1:0 > "$work/said" 2> "$work/log" &
running=$!
until grep -q '^Ready' "$work/said"; do sleep 0.2; done
image run "$container" -- aaep status
kill "$running"
wait "$running" || true
image rm --all > /dev/null
say "the container answers its health check"
