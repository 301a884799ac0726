//go:build unix

package process

import (
	"bufio"
	"os"
	"os/exec"
	"testing"
)

// startCat starts a process in a group of its own that says again what it is told, until its stdin ends.
func startCat(t *testing.T) (cmd *exec.Cmd, ours [3]*os.File) {
	t.Helper()
	cmd = exec.Command("cat")
	cmd.SysProcAttr = groupAttr()
	ours, err := openPipes(cmd)
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Start()
	closeAll(cmd.Stdin.(*os.File), cmd.Stdout.(*os.File), cmd.Stderr.(*os.File))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(ours[:]...) })
	return cmd, ours
}

// Not every system can tell that a process has ended before it is reaped.
func TestAnEndThatIsOnlySeenByReaping(t *testing.T) {
	cmd, ours := startCat(t)
	waits := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- awaitEnd(cmd, func(*os.Process) bool { close(waits); return false })
	}()
	<-waits
	_, _ = ours[0].WriteString("hello\n")
	if got, err := bufio.NewReader(ours[1]).ReadString('\n'); got != "hello\n" {
		t.Errorf("the process says %q, %v", got, err)
	}
	_ = ours[0].Close()
	if err := <-ended; err != nil {
		t.Errorf("a process that ends by itself: %v", err)
	}
}

func TestNothingIsSignalledOnceTheGroupIsGone(t *testing.T) {
	first, ours := startCat(t)
	_ = ours[0].Close()
	c := &Child{home: &Home{}, cmd: first, exited: make(chan struct{})}
	c.Reap()
	other, others := startCat(t)
	first.Process.Pid = other.Process.Pid // as if the number had been given to another
	c.signal(false)
	c.Kill()
	_, _ = others[0].WriteString("hello\n")
	_ = others[0].Close()
	if err := other.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}
