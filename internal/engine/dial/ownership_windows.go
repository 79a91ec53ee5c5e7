package dial

import (
	"fmt"
	"os"
)

// ownership tells whose a socket is.
func ownership(info os.FileInfo) string {
	return fmt.Sprintf("its mode is %v", info.Mode())
}
