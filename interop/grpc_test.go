package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcinterop "google.golang.org/grpc/interop"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The ways that a call may take: to the router over TLS or in cleartext, and
// from there to the cell.
var grpcWays = []struct {
	name   string
	secure bool
	tenant string
}{
	{"tls to router, cleartext to cell", true, "calls"},
	{"h2c to router, cleartext to cell", false, "calls"},
	{"tls to router, tls to cell", true, "calls-tls"},
	{"h2c to router, tls to cell", false, "calls-tls"},
}

// largest is the size of the largest message, in bytes.
const largest = 8 << 20

// A service is the standard test service, with what it lacks for us.
type service struct {
	testpb.TestServiceServer
	gone chan error // causes of calls that their clients have ended
}

// UnaryCall sleeps for a client that sends "x-sleep", and tells how the call
// ended.
func (s *service) UnaryCall(ctx context.Context, in *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if len(md.Get("x-sleep")) > 0 {
		<-ctx.Done()
		s.gone <- ctx.Err()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if deadline, ok := ctx.Deadline(); ok {
		must := metadata.Pairs("x-left", time.Until(deadline).String())
		if err := grpc.SetHeader(ctx, must); err != nil {
			return nil, err
		}
	}
	return s.TestServiceServer.UnaryCall(ctx, in)
}

// serveGRPC serves the test service and returns its address.
func serveGRPC(t *testing.T, s *service, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer(append(options, grpc.MaxRecvMsgSize(2*largest), grpc.MaxSendMsgSize(2*largest))...)
	testpb.RegisterTestServiceServer(server, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().String()
}

// newGRPCRig starts a router over two cells that serve calls.
func newGRPCRig(t *testing.T) (*rig, *service) {
	t.Helper()
	ca := newAuthority(t)
	s := &service{TestServiceServer: grpcinterop.NewTestServer(), gone: make(chan error, 16)}
	clear := serveGRPC(t, s)
	secure := serveGRPC(t, s, grpc.Creds(credentials.NewServerTLSFromCert(new(ca.pair(t, "calls-tls")))))
	return newRig(t, ca, []cellSpec{{"calls", "http://" + clear}, {"calls-tls", "https://" + secure}}), s
}

// dial returns a connection to addr that names its tenant in the authority.
func dial(addr, tenant string, roots *x509.CertPool) (*grpc.ClientConn, error) {
	creds := insecure.NewCredentials()
	if roots != nil {
		creds = credentials.NewTLS(&tls.Config{RootCAs: roots})
	}
	return grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds), grpc.WithAuthority(host(tenant)),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(2*largest), grpc.MaxCallSendMsgSize(2*largest)))
}

func TestGRPC(t *testing.T) {
	r, s := newGRPCRig(t)
	for _, way := range grpcWays {
		t.Run(way.name, func(t *testing.T) {
			addr, roots := r.plain, (*x509.CertPool)(nil)
			if way.secure {
				addr, roots = r.tls, r.roots
			}
			conn, err := dial(addr, way.tenant, roots)
			must(t, err)
			defer conn.Close()
			calls := testpb.NewTestServiceClient(conn)
			t.Run("metadata, status and trailers", func(t *testing.T) { grpcMetadata(t, calls) })
			t.Run("large messages", func(t *testing.T) { grpcLarge(t, calls) })
			t.Run("server stream", func(t *testing.T) { grpcServerStream(t, calls) })
			t.Run("both at once", func(t *testing.T) { grpcBidi(t, calls) })
			t.Run("deadline", func(t *testing.T) { grpcDeadline(t, calls, s) })
			t.Run("cancellation", func(t *testing.T) { grpcCancel(t, calls, s) })
			t.Run("many calls at once", func(t *testing.T) { grpcMany(t, calls) })
			t.Run("no such method", func(t *testing.T) {
				if err := conn.Invoke(t.Context(), "/grpc.testing.TestService/None", new(testpb.Empty), new(testpb.Empty)); status.Code(err) != codes.Unimplemented {
					t.Errorf("got %v", err)
				}
			})
		})
	}
	t.Run("what the router refuses", func(t *testing.T) {
		conn, err := dial(r.tls, "nobody", r.roots)
		must(t, err)
		defer conn.Close()
		_, err = testpb.NewTestServiceClient(conn).EmptyCall(t.Context(), new(testpb.Empty))
		if s := status.Convert(err); s.Code() != codes.NotFound || !strings.HasPrefix(s.Message(), string(cellway.KeyUnknown)+": ") {
			t.Errorf("an unknown tenant: %v", err)
		}
		r.drain(t, "calls-tls")
		drained, err := dial(r.tls, "calls-tls", r.roots)
		must(t, err)
		defer drained.Close()
		eventually(t, "the cell is drained", func() error {
			_, err := testpb.NewTestServiceClient(drained).EmptyCall(t.Context(), new(testpb.Empty))
			if status.Code(err) != codes.Unavailable {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	})
}

func grpcMetadata(t *testing.T, calls testpb.TestServiceClient) {
	binary := string([]byte{0, 1, 0xff, 0x80})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-grpc-test-echo-initial", "hello", "x-grpc-test-echo-trailing-bin", binary)
	var header, trailer metadata.MD
	_, err := calls.UnaryCall(ctx, &testpb.SimpleRequest{ResponseSize: 1}, grpc.Header(&header), grpc.Trailer(&trailer))
	must(t, err)
	if got := header.Get("x-grpc-test-echo-initial"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("header: %q", got)
	}
	if got := trailer.Get("x-grpc-test-echo-trailing-bin"); !slices.Equal(got, []string{binary}) {
		t.Errorf("trailer: %q", got)
	}
	for name := range maps.Keys(header) {
		if strings.HasPrefix(name, "x-cell-") {
			t.Errorf("the client sees %s", name)
		}
	}
	message := "not so: \t\nüñí"
	_, err = calls.UnaryCall(ctx, &testpb.SimpleRequest{ResponseStatus: &testpb.EchoStatus{Code: int32(codes.FailedPrecondition), Message: message}}, grpc.Trailer(&trailer))
	if s := status.Convert(err); s.Code() != codes.FailedPrecondition || s.Message() != message {
		t.Errorf("status: %v", err)
	}
	if got := trailer.Get("x-grpc-test-echo-trailing-bin"); !slices.Equal(got, []string{binary}) {
		t.Errorf("trailer of a failure: %q", got)
	}
}

func grpcLarge(t *testing.T, calls testpb.TestServiceClient) {
	body := bytes.Repeat([]byte{7}, largest)
	res, err := calls.UnaryCall(t.Context(), &testpb.SimpleRequest{Payload: &testpb.Payload{Body: body}, ResponseSize: largest})
	must(t, err)
	if n := len(res.Payload.Body); n != largest {
		t.Errorf("got %d bytes", n)
	}
	stream, err := calls.StreamingInputCall(t.Context())
	must(t, err)
	for range 4 {
		must(t, stream.Send(&testpb.StreamingInputCallRequest{Payload: &testpb.Payload{Body: body}}))
	}
	sum, err := stream.CloseAndRecv()
	must(t, err)
	if sum.AggregatedPayloadSize != 4*largest {
		t.Errorf("the cell got %d bytes", sum.AggregatedPayloadSize)
	}
}

func grpcServerStream(t *testing.T, calls testpb.TestServiceClient) {
	var want []*testpb.ResponseParameters
	for i := range 20 {
		want = append(want, &testpb.ResponseParameters{Size: int32(1 + i*5000), IntervalUs: 1000})
	}
	stream, err := calls.StreamingOutputCall(t.Context(), &testpb.StreamingOutputCallRequest{ResponseParameters: want})
	must(t, err)
	for i := range want {
		m, err := stream.Recv()
		must(t, err)
		if n := len(m.Payload.Body); n != int(want[i].Size) {
			t.Errorf("message %d has %d bytes, want %d", i, n, want[i].Size)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// grpcBidi sends a message only when the answer to the one before is there, so
// that anything held back on the way stops it.
func grpcBidi(t *testing.T, calls testpb.TestServiceClient) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	stream, err := calls.FullDuplexCall(ctx)
	must(t, err)
	for i := range 50 {
		size := int32(1 + i*977%60000)
		must(t, stream.Send(&testpb.StreamingOutputCallRequest{ResponseParameters: []*testpb.ResponseParameters{{Size: size}}, Payload: &testpb.Payload{Body: make([]byte, size)}}))
		m, err := stream.Recv()
		must(t, err)
		if len(m.Payload.Body) != int(size) {
			t.Errorf("answer %d has %d bytes, want %d", i, len(m.Payload.Body), size)
		}
	}
	must(t, stream.CloseSend())
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func grpcDeadline(t *testing.T, calls testpb.TestServiceClient, s *service) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var header metadata.MD
	_, err := calls.UnaryCall(ctx, &testpb.SimpleRequest{}, grpc.Header(&header))
	must(t, err)
	if left := header.Get("x-left"); len(left) != 1 {
		t.Errorf("the cell knows of no deadline: %q", left)
	} else if d, err := time.ParseDuration(left[0]); err != nil || d <= 0 || d > 30*time.Second {
		t.Errorf("the cell's deadline is in %v", left)
	}
	short, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-sleep", "1"), 200*time.Millisecond)
	defer cancel()
	if _, err := calls.UnaryCall(short, &testpb.SimpleRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	s.ended(t)
}

func grpcCancel(t *testing.T, calls testpb.TestServiceClient, s *service) {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "x-sleep", "1"))
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := calls.UnaryCall(ctx, &testpb.SimpleRequest{}); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	s.ended(t)
}

// ended waits until the cell has seen a call end.
func (s *service) ended(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.gone:
		if err == nil {
			t.Error("the call ended without a cause")
		}
	case <-time.After(10 * time.Second):
		t.Error("the cell still works for a client that has gone")
	}
}

func grpcMany(t *testing.T, calls testpb.TestServiceClient) {
	errs := make(chan error)
	const many = 500
	for i := range many {
		go func() {
			res, err := calls.UnaryCall(t.Context(), &testpb.SimpleRequest{ResponseSize: int32(i), Payload: &testpb.Payload{Body: make([]byte, i)}})
			if err == nil && len(res.Payload.GetBody()) != i {
				err = fmt.Errorf("call %d got %d bytes", i, len(res.Payload.GetBody()))
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// standard are the cases that gRPC implementations hold each other to.
var standard = map[string]func(context.Context, *grpc.ClientConn, testpb.TestServiceClient){
	"empty_unary":                 call(grpcinterop.DoEmptyUnaryCall),
	"large_unary":                 call(grpcinterop.DoLargeUnaryCall),
	"client_streaming":            call(grpcinterop.DoClientStreaming),
	"server_streaming":            call(grpcinterop.DoServerStreaming),
	"ping_pong":                   call(grpcinterop.DoPingPong),
	"empty_stream":                call(grpcinterop.DoEmptyStream),
	"timeout_on_sleeping_server":  call(grpcinterop.DoTimeoutOnSleepingServer),
	"cancel_after_begin":          call(grpcinterop.DoCancelAfterBegin),
	"cancel_after_first_response": call(grpcinterop.DoCancelAfterFirstResponse),
	"custom_metadata":             call(grpcinterop.DoCustomMetadata),
	"status_code_and_message":     call(grpcinterop.DoStatusCodeAndMessage),
	"special_status_message":      call(grpcinterop.DoSpecialStatusMessage),
	"unimplemented_method": func(ctx context.Context, c *grpc.ClientConn, _ testpb.TestServiceClient) {
		grpcinterop.DoUnimplementedMethod(ctx, c)
	},
	"unimplemented_service": func(ctx context.Context, c *grpc.ClientConn, _ testpb.TestServiceClient) {
		grpcinterop.DoUnimplementedService(ctx, testpb.NewUnimplementedServiceClient(c))
	},
}

func call(f func(context.Context, testpb.TestServiceClient, ...grpc.CallOption)) func(context.Context, *grpc.ClientConn, testpb.TestServiceClient) {
	return func(ctx context.Context, _ *grpc.ClientConn, c testpb.TestServiceClient) { f(ctx, c) }
}

// grpcCase runs one standard case. They end the process when they fail, so each
// is a child.
func grpcCase(ctx context.Context, args []string) int {
	f := flag.NewFlagSet("grpc", flag.ContinueOnError)
	addr, tenant, ca, name := f.String("addr", "", ""), f.String("tenant", "", ""), f.String("ca", "", ""), f.String("case", "", "")
	if err := f.Parse(args); err != nil {
		return 2
	}
	var roots *x509.CertPool
	if *ca != "" {
		text, err := os.ReadFile(*ca)
		if roots = x509.NewCertPool(); err != nil || !roots.AppendCertsFromPEM(text) {
			fmt.Fprintln(os.Stderr, "no authority:", err)
			return 2
		}
	}
	conn, err := dial(*addr, *tenant, roots)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer conn.Close()
	standard[*name](ctx, conn, testpb.NewTestServiceClient(conn))
	return 0
}

func TestGRPCStandardCases(t *testing.T) {
	r, _ := newGRPCRig(t)
	for _, way := range grpcWays {
		args := []string{"-addr", r.plain, "-tenant", way.tenant}
		if way.secure {
			args = []string{"-addr", r.tls, "-tenant", way.tenant, "-ca", r.caFile}
		}
		t.Run(way.name, func(t *testing.T) {
			for _, name := range slices.Sorted(maps.Keys(standard)) {
				if name == "timeout_on_sleeping_server" {
					continue // it takes no other status than its own clock's: see outOfTime
				}
				t.Run(name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					cmd := exec.CommandContext(ctx, os.Args[0], append([]string{"grpc", "-case", name}, args...)...)
					stdin, err := cmd.StdinPipe()
					must(t, err)
					defer stdin.Close()
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("%v\n%s", err, out)
					}
				})
			}
		})
	}
}
