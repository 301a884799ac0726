package main

import (
	"os"
	"os/signal"
	"syscall"
)

// endAtOnce ends the process with the second signal to stop: whoever sends it does not want to wait, but the processes that
// we have started must not stay behind. The function that it returns ends the waiting for it.
func endAtOnce(kill func()) (stop func()) {
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
		}
		kill()
		os.Exit(exitError)
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
