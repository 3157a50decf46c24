package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"diagnose/fleet/engine"
	"diagnose/fleet/work"
)

// The roles of the processes that this program starts.
const roleServer, roleWorker = "as-server", "as-worker"

const benchVersion, benchTeam = "bench", "bench"

// serve is a NATS server until ctx ends.
func serve(ctx context.Context, dir, address string) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{ServerName: "bench", Host: host, Port: port, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return errors.New("the server does not start")
	}
	<-ctx.Done()
	s.Shutdown()
	return nil
}

// labour is a worker until ctx ends.
func labour(ctx context.Context, url, dir, diagnose string) error {
	e, err := engine.Connect(ctx, engine.Options{URL: url, Team: benchTeam})
	if err != nil {
		return err
	}
	defer e.Close()
	shop, err := work.OpenWorkshop(dir)
	if err != nil {
		return err
	}
	defer shop.Close()
	return work.Work(ctx, e, work.WorkerOptions{Version: benchVersion, Command: []string{diagnose}, Jobs: 1, Dir: shop.Dir, Confine: work.NewIsolation(diagnose),
		Progress: func(s work.Step) {
			if s.Err != nil {
				fmt.Fprintln(os.Stderr, filepath.Base(shop.Dir), s.Err)
			}
		}})
}
