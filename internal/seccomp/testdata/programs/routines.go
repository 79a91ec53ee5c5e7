package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for i := range 1000 {
		wg.Add(1)
		go func() { defer wg.Done(); mu.Lock(); sum += i; mu.Unlock() }()
	}
	wg.Wait()
	must(exec.Command("true").Run())
	if sum != 499500 {
		os.Exit(1)
	}
	if os.Getenv("NO_SOCKETS") == "" {
		serve()
	}
	fmt.Println("works")
}

func serve() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() { _ = http.Serve(l, http.NotFoundHandler()) }()
	r, err := http.Get("http://" + l.Addr().String())
	must(err)
	must(r.Body.Close())
	_, err = net.Interfaces()
	must(err)
	if r.StatusCode != 404 {
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
