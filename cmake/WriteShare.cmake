# cmake -DHONE=PROGRAM -DSHARE=FOLDER -DVERSION=... -DLIBRARY=libhoneN -DCHANGES=FILE -DLICENSE=FILE -P: asks the program for pages of the manual and
# for completion.
function(write_from_hone file)
  execute_process(COMMAND ${HONE} ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${SHARE})
file(MAKE_DIRECTORY ${SHARE}/man/man1 ${SHARE}/bash-completion/completions ${SHARE}/zsh/vendor-completions ${SHARE}/fish/vendor_completions.d
     ${SHARE}/doc/hone)
write_from_hone(${SHARE}/bash-completion/completions/hone completion bash)
write_from_hone(${SHARE}/zsh/vendor-completions/_hone completion zsh)
write_from_hone(${SHARE}/fish/vendor_completions.d/hone.fish completion fish)
write_from_hone(${SHARE}/man/man1/hone.1 man)
execute_process(COMMAND ${HONE} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "commands:\n.*\n\n`hone COMMAND" listed "${help}")
string(REGEX MATCHALL "\n  [a-z]+ " commands "${listed}")
foreach(command IN LISTS commands)
  string(STRIP "${command}" command)
  write_from_hone(${SHARE}/man/man1/hone-${command}.1 man ${command})
endforeach()
foreach(package IN ITEMS hone ${LIBRARY} libhone-dev)
  file(MAKE_DIRECTORY ${SHARE}/doc/${package})
  file(COPY_FILE ${LICENSE} ${SHARE}/doc/${package}/copyright)
  file(WRITE ${SHARE}/doc/${package}/changelog "hone (${VERSION}) unstable; urgency=medium\n\n  * What is new is in NEWS of the package hone.\n\n"
       " -- The hone authors <hone@example.org>  Mon, 16 Nov 2026 00:00:00 +0000\n")
endforeach()
file(COPY_FILE ${CHANGES} ${SHARE}/doc/hone/NEWS)
# CPack has ldconfig called for any package with a module in it, and not by a trigger.
file(WRITE ${SHARE}/lintian/overrides/hone "hone: maintscript-calls-ldconfig *\n")
file(WRITE ${SHARE}/lintian/overrides/${LIBRARY} "${LIBRARY}: maintscript-calls-ldconfig *\n${LIBRARY}: no-symbols-control-file *\n")
file(GLOB pages ${SHARE}/man/man1/*.1)
file(GLOB changelogs ${SHARE}/doc/*/changelog)
execute_process(COMMAND gzip -9nf ${pages} ${changelogs} ${SHARE}/doc/hone/NEWS COMMAND_ERROR_IS_FATAL ANY)
file(TOUCH ${SHARE}/written)
