# one_of(NAME VALUE...): the option, in small letters; a word that is none of these stops the build instead of meaning nothing.
function(one_of name)
  string(TOLOWER "${${name}}" value)
  if(NOT value IN_LIST ARGN)
    list(JOIN ARGN ", " words)
    message(FATAL_ERROR "${name} is '${${name}}'; it is one of: ${words}")
  endif()
  set(${name} ${value} PARENT_SCOPE)
endfunction()
