/* The parts of the page of hone compare. */
drawPage([overview, losses, speed, memory, figures, differences]);
