package cheapmcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ServeStdio answers the lines of in on out until in ends. Answers are flushed
// when no further line is waiting, so that a burst of requests costs few
// writes and a single one is answered at once.
func ServeStdio(s *Server, in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, maxBody)
	answers := bufio.NewWriterSize(out, 128<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return answers.Flush()
		}
		if err != nil {
			return fmt.Errorf("reading a line: %w", err)
		}
		if _, rep := s.answer(line); rep.answers() {
			writeLine(answers, &rep)
		}
		if lines.Buffered() == 0 {
			if err := answers.Flush(); err != nil {
				return fmt.Errorf("writing answers: %w", err)
			}
		}
	}
}

// writeLine leaves errors to the next Flush, which reports them.
func writeLine(out *bufio.Writer, rep *reply) {
	if rep.code != 0 {
		out.Write(rep.render())
	} else {
		out.WriteString(replyHead)
		out.Write(rep.id)
		out.WriteString(replyResult)
		out.Write(rep.result)
		out.WriteString(replyEnd)
	}
	out.WriteByte('\n')
}
