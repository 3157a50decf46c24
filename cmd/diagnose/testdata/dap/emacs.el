;; Drives a debug adapter, which has opened the recording of total.c, from Emacs with dap-mode:
;; emacs --batch -l emacs.el ADAPTER SOURCE
(package-initialize)
(setq dap-auto-configure-features nil
      user-emacs-directory (file-name-directory load-file-name)
      lsp-session-file (expand-file-name "session" user-emacs-directory)
      dap-breakpoints-file (expand-file-name "breakpoints" user-emacs-directory))
(unless (require 'dap-mode nil t)
  (message "dap-mode is missing")
  (kill-emacs 77))

;; What the user's configuration has: docs/debug.md.
(dap-register-debug-provider "diagnose" #'identity)
(defun diagnose-step-back () "Step back." (interactive) (dap--step "stepBack" (dap--cur-session)))
(defun diagnose-reverse-continue () "Continue backwards." (interactive) (dap--step "reverseContinue" (dap--cur-session)))

(defvar adapter (nth 0 command-line-args-left))
(defvar source (nth 1 command-line-args-left))

(defun wait-for (what condition)
  "Handle the adapter's messages until CONDITION holds."
  (with-timeout (60 (message "no %s" what) (kill-emacs 1))
    (while (not (funcall condition)) (accept-process-output nil 0.05))))

(defun frame-line ()
  (let ((frame (and (dap--cur-session) (dap--debug-session-active-frame (dap--cur-session)))))
    (and frame (gethash "line" frame))))

(defun expect (what line)
  "Wait until the program is stopped at LINE, and the buffer shows it."
  (wait-for (format "%s at line %d" what line) (lambda () (equal (frame-line) line)))
  (unless (and (string= (buffer-file-name (window-buffer)) source)
               (= line (with-current-buffer (window-buffer) (line-number-at-pos))))
    (message "%s: the buffer is at line %d of %s" what (line-number-at-pos) (buffer-file-name))
    (kill-emacs 1))
  (message "%s: line %d" what line))

(dap-mode 1)
(find-file source)
(goto-char (point-min))
(forward-line 10)
(dap-breakpoint-add)
(dap-start-debugging (list :type "diagnose" :request "launch" :name "recording" :dap-server-path (list adapter)))
(expect "opened" 35)
(wait-for "causes" (lambda () (seq-find (lambda (thread) (string= (gethash "name" thread) "causes"))
                                        (dap--debug-session-threads (dap--cur-session)))))
(diagnose-reverse-continue)
(expect "breakpoint" 11)
(dap-step-out (dap--cur-session))
(expect "step out" 33)
(diagnose-step-back)
(expect "step back" 11)
(dap-disconnect (dap--cur-session))
(message "all steps are done")
(kill-emacs 0)
