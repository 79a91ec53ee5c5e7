package dial

import (
	"fmt"
	"os"
)

// ownership describes a socket's owner.
func ownership(info os.FileInfo) string {
	return fmt.Sprintf("its mode is %v", info.Mode())
}
