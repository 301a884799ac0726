package agents

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mcp-proxy/mcp-proxy/internal/config"
)

// command is an agent that is a program, started for each run.
type command struct {
	cfg  *config.Server
	exec Exec
}

var errZeroByte = errors.New("the input holds a zero byte, which no argument of a program can")

func (c *command) run(ctx context.Context, input string, _ func(string)) (string, error) {
	a := c.cfg.Agent
	input = told(a, input)
	marked := slices.ContainsFunc(c.cfg.Args, func(arg string) bool { return strings.Contains(arg, config.InputMark) })
	if !marked && a.Input == config.InputStdin {
		return c.exec(ctx, c.cfg.Args, []byte(input), a.MaxAnswerBytes)
	}
	if strings.ContainsRune(input, 0) {
		return "", errZeroByte
	}
	args := make([]string, len(c.cfg.Args))
	for i, arg := range c.cfg.Args {
		args[i] = strings.ReplaceAll(arg, config.InputMark, input)
	}
	if !marked {
		args = append(args, input)
	}
	return c.exec(ctx, args, nil, a.MaxAnswerBytes)
}
