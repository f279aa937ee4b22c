"""shell.py COMMAND...: runs COMMAND as the foreground job of a pseudo-terminal, as a shell does: the
leader of the session is another process, and outlives it. What comes on stdin is typed. What the
terminal shows is copied to stdout, with a line for the job's pid and one for its end, '<job ...>'.
Ends, and hangs up the terminal, when stdin ends."""
import os, pty, select, signal, sys


def lead(command):
    for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP):
        signal.signal(name, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        for name in (signal.SIGINT, signal.SIGQUIT, signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP):
            signal.signal(name, signal.SIG_DFL)
        os.write(1, b'<job %d>\n' % os.getpid())
        os.execvp(command[0], command)
    status = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    os.tcsetpgrp(0, os.getpgrp())
    os.write(1, b'<job ended: %d>\n' % status)
    while True:
        signal.pause()


leader, terminal = pty.fork()
if leader == 0:
    lead(sys.argv[1:])
typed = 0
while True:
    ready = select.select([typed, terminal], [], [])[0]
    if terminal in ready:
        try:
            os.write(1, os.read(terminal, 65536))
        except OSError:  # Linux: EIO once the last process of the terminal has ended
            break
    if typed in ready:
        keys = os.read(typed, 1024)
        if not keys:
            break
        os.write(terminal, keys)
os.kill(leader, signal.SIGKILL)
