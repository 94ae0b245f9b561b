# Installs the manual pages and the completion of shells. The program prints them, so that they are
# always about its own options. A program that was built for another CPU may not run here; then they
# are left out.

include(GNUInstallDirs)

install(CODE "
  set(program \"$<TARGET_FILE:sluice>\")
  set(printed \"${CMAKE_BINARY_DIR}/manual\")
  set(manual_folder \"${CMAKE_INSTALL_MANDIR}/man1\")
  set(data_folder \"${CMAKE_INSTALL_DATADIR}\")
" COMPONENT manual)
install(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/install_manual.cmake" COMPONENT manual)
