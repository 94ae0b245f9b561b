# Prints the manual pages and completions to ${printed} with ${program}, and installs them.
# SluiceManual.cmake sets the variables.

file(MAKE_DIRECTORY "${printed}")
execute_process(COMMAND "${program}" man --list
  OUTPUT_VARIABLE commands RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(WARNING "The program does not run here; its manual pages and completions are left out.")
  return()
endif()
string(REPLACE "\n" ";" commands "${commands}")

function(install_printed folder name)
  execute_process(COMMAND "${program}" ${ARGN}
    OUTPUT_FILE "${printed}/${name}" COMMAND_ERROR_IS_FATAL ANY)
  if(NOT IS_ABSOLUTE "${folder}")
    set(folder "${CMAKE_INSTALL_PREFIX}/${folder}")
  endif()
  file(INSTALL DESTINATION "${folder}" TYPE FILE FILES "${printed}/${name}")
endfunction()

install_printed("${manual_folder}" sluice.1 man)
foreach(command IN LISTS commands)
  if(command)
    install_printed("${manual_folder}" "sluice-${command}.1" man "${command}")
  endif()
endforeach()
install_printed("${data_folder}/bash-completion/completions" sluice completion bash)
install_printed("${data_folder}/zsh/site-functions" _sluice completion zsh)
install_printed("${data_folder}/fish/vendor_completions.d" sluice.fish completion fish)
