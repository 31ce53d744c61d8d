/* fork and wait, a pipe between, a child that dies of a signal. */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int pipes[2], status, sum = 0;
  if (pipe(pipes)) return 1;
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0) {
      char byte = (char)(i + 1);
      _exit(write(pipes[1], &byte, 1) == 1 ? i : 99);
    }
    char byte;
    if (read(pipes[0], &byte, 1) != 1) return 2;
    waitpid(child, &status, 0);
    sum = sum * 10 + byte + WEXITSTATUS(status);
  }
  pid_t child = fork();
  if (child == 0) raise(SIGKILL);
  waitpid(child, &status, 0);
  printf("children %d %d\n", sum, WTERMSIG(status));
  return 0;
}
