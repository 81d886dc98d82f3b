function r(e){return e.field?`${e.field}: ${e.message}`:e.message}export{r as a};
