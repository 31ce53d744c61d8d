// Fifty goroutines on two processors, collections of garbage, and a loop that only a signal interrupts.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

func work(n int) int {
	sum := 0
	for i := 0; i < n; i++ {
		sum += i * i % 7
	}
	return sum
}

func main() {
	runtime.GOMAXPROCS(2)
	var group sync.WaitGroup
	var lock sync.Mutex
	total, kept := 0, map[int][]byte{}
	for g := 0; g < 50; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			sum := work(100000)
			bytes := make([]byte, 100000+g)
			for i := range bytes {
				bytes[i] = byte(i)
			}
			lock.Lock()
			total += sum
			kept[g%7] = bytes
			lock.Unlock()
		}(g)
	}
	done := make(chan bool)
	go func() {
		for i := 0; i < 5; i++ {
			time.Sleep(time.Millisecond)
			runtime.GC()
		}
		done <- true
	}()
	group.Wait()
	<-done
	spin := 0
	go func() {
		for {
			spin++
		}
	}()
	time.Sleep(20 * time.Millisecond)
	fmt.Println(total, len(kept))
}
