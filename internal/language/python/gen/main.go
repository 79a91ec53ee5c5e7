// Command gen makes capture.zip of the modules in capture/llmsandbox_capture, in the form that Python imports
// from. It is not compressed: that would take longer than a run of a short program.
package main

import (
	"archive/zip"
	"bytes"
	"log"
	"os"
	"path"
	"path/filepath"
)

func main() {
	log.SetFlags(0)
	modules, err := filepath.Glob("capture/llmsandbox_capture/*.py")
	if err != nil {
		log.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range modules {
		data, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: path.Join("llmsandbox_capture", filepath.Base(name)), Method: zip.Store})
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("capture.zip", out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
