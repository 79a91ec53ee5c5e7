package llmsandbox

import (
	"github.com/llmsandbox/llmsandbox/internal/kernel"
)

// install installs what a cell's code asks for, where the kernel's owner has allowed it,
// and tells the driver where that is.
func (c *cellRun) install(libraries []string) {
	k := c.kernel
	reply := kernel.Request{Op: kernel.OpInstalled, ID: c.id}
	var err error
	if !k.opts.AllowInstall {
		reply.Error = "this kernel may not install libraries: its owner can allow it (KernelOptions.AllowInstall, --allow-install), or install them before"
	} else if err = k.sandbox.install(c.ctx, k.language.Name, libraries, nil); err == nil {
		reply.Dirs, err = k.sandbox.libraryFolders(c.ctx, k.language.Name)
	}
	if err != nil {
		reply.Error = err.Error()
	}
	if c.ctx.Err() == nil { // else the cell has ended meanwhile
		c.driver.tell(reply)
	}
}
