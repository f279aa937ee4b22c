"""terminal.py COLUMNS UID COMMAND...: runs COMMAND in a pseudo-terminal of COLUMNS columns, as the
user UID (-1: as this one). Copies what the terminal shows to stdout; the exit code is COMMAND's."""
import fcntl, os, pty, struct, sys, termios

columns, uid, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    # The size is set before the program starts, which reads it once.
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    if uid != -1:
        os.setgid(uid)
        os.setuid(uid)
    os.execvp(command[0], command)
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:  # Linux: EIO once the last process of the terminal has ended
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
