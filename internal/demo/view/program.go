package view

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
)

// A Config joins a view with what it shows.
type Config struct {
	State func() State // asked four times a second; must not block
	Press func(string) // told of each key but q and ctrl+c, which quit, and ?, which shows the keys; must not block
	In    io.Reader    // the terminal; if nil, standard input
	Out   io.Writer    // the terminal; if nil, standard output
}

// every is the time between two pictures.
const every = 250 * time.Millisecond

// Run shows the view until q or ctrl+c is pressed or ctx ends, leaves the
// terminal as it was, and returns nil.
func Run(ctx context.Context, cfg Config) error {
	opts := []tea.ProgramOption{tea.WithContext(ctx), tea.WithoutSignalHandler()}
	if cfg.In != nil {
		opts = append(opts, tea.WithInput(cfg.In))
	}
	if cfg.Out != nil {
		opts = append(opts, tea.WithOutput(cfg.Out))
	}
	_, err := tea.NewProgram(model{cfg: cfg, width: 100, height: 40}, opts...).Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

// A model is the view as the terminal library wants it.
type model struct {
	cfg           Config
	width, height int
	help          bool // the keys are shown instead of the fleet
}

// tick asks for a new picture.
type tick struct{}

func nextTick() tea.Cmd {
	return tea.Tick(every, func(time.Time) tea.Msg { return tick{} })
}

// Init implements [tea.Model].
func (m model) Init() tea.Cmd { return nextTick() }

// Update implements [tea.Model].
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		return m, nextTick()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		switch key := msg.String(); {
		case key == "q", key == "ctrl+c":
			return m, tea.Quit
		case m.help || key == "?":
			m.help = !m.help
		default:
			m.cfg.Press(key)
		}
	}
	return m, nil
}

// View implements [tea.Model].
func (m model) View() tea.View {
	v := tea.NewView(m.picture())
	v.AltScreen = true
	v.WindowTitle = "Cellway demo"
	return v
}

func (m model) picture() string {
	if m.help {
		return DrawHelp(m.cfg.State(), m.width, m.height, false)
	}
	return Draw(m.cfg.State(), m.width, m.height, false)
}
