// Package powercut is a file system whose power can be cut: what was synced is there
// afterwards, and nothing else needs to be.
//
// It is an ext4 image in a file, mounted through a loop device. Cut tells the file
// system to shut down at once without writing its journal, which is what a machine
// that loses power leaves behind as far as anybody can tell who did not wait for a
// sync. It needs root, mkfs.ext4, mount, umount and losetup, and touches nothing
// outside of its directory. While another mount namespace has a copy of the mount
// there is no Restore: run it in a mount namespace of its own (unshare -m).
package powercut
